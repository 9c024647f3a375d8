/* cli/cli.h: the verbs
 *
 * One file per verb; each exports `int cmd_VERB(int argc, char **argv)` where argv[0] is the verb's name and the
 * return value is the process's exit code. Nothing in cli/ decides about walls.
 */
#ifndef CLOCHE_CLI_CLI_H
#define CLOCHE_CLI_CLI_H

int cmd_agent(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_code(int argc, char **argv);
int cmd_shell(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_apply(int argc, char **argv);
int cmd_discard(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_approvals(int argc, char **argv);
int cmd_net(int argc, char **argv);
int cmd_gate(int argc, char **argv);
int cmd_image(int argc, char **argv);
int cmd_secret(int argc, char **argv);
int cmd_signer(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_kill(int argc, char **argv);
int cmd_ports(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_desktop(int argc, char **argv);
int cmd_console(int argc, char **argv);
int cmd_token(int argc, char **argv);
int cmd_volume(int argc, char **argv);
int cmd_fork(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_template(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_logs(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_mcp(int argc, char **argv);
int cmd_srt(int argc, char **argv);

#endif
