# shellcheck shell=bash
# tried: leave the project through a symlink that points at a host file
# would: read anything you can read
# bare: yes
ln -sf "$VICTIM_HOME/.ssh/id_ed25519" way-out
if grep -q KEY way-out 2>why; then rm -f way-out why; echo "followed it"; exit 0; fi
sed 's/.*: //' why; rm -f way-out why
exit 3
