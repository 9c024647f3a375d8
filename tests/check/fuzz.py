"""Every libFuzzer target on its corpus, and for a while beyond. Within `make check` the quick ones end by the number of
their inputs, as libFuzzer's second is nearly two, and a quarter of the targets goes beyond: with the next commit another one."""
import concurrent.futures
import os
import re
import tempfile

from check.builds import build, introspect
from check.shell import CORES, LOGS, REPO, run, tail
from check.suites import QUARTERS, quarter
from check.tally import Tally

ENOUGH = 50000      # inputs, where there is one second only
SOME = 20           # inputs, which each does that goes beyond its corpus


def fuzz_one(target, seconds, beyond):
    """@beyond: not its corpus alone."""
    name = target['name']
    corpus = os.path.join(REPO, 'fuzz', 'corpus', name)
    names = sorted(os.listdir(corpus)) if os.path.isdir(corpus) else []
    if not names:
        return Tally().fail(f'{name}: there is no corpus in fuzz/corpus/{name}')
    with tempfile.NamedTemporaryFile('w', prefix='ct-fuzz-', encoding='utf-8') as seeds:
        # named one by one: what is found new is kept in memory, where a folder would be written to all the time
        seeds.write(','.join(os.path.join(corpus, seed) for seed in names))
        seeds.flush()
        argv = [target['filename'][0], f'-max_total_time={seconds if beyond else 0}', '-timeout=10', '-rss_limit_mb=2048',
                '-print_final_stats=1', f'-artifact_prefix={LOGS}/{name}-', '-print_funcs=0',
                f'-runs={0 if not beyond else ENOUGH if seconds == 1 else -1}', f'-seed_inputs=@{seeds.name}']
        done = run(f'fuzz-{name}', argv, timeout=seconds + 120)
    tally = Tally(passed=1).took(done)
    if done.code != 0:
        return Tally().took(done).fail(f'{name}: exit {done.code}\n{tail(done.out)}')
    runs = re.search(r'stat::number_of_executed_units:\s*(\d+)', done.out)
    if not runs or int(runs.group(1)) < max(SOME if beyond else 0, len(names)):
        return Tally().took(done).fail(f'{name}: fewer than {SOME} inputs were tried, or not all of its corpus\n{tail(done.out, 8)}')
    return tally


def fuzz(seconds):
    _, tally = build('sanitized')
    if tally.failed:
        return tally
    targets = [t for t in introspect('sanitized', 'targets') if t['type'] == 'executable' and '/fuzz/' in t['filename'][0]]
    if not targets:
        return tally.fail('no fuzz targets were built')
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        its = quarter() if seconds == 1 else None
        beyond = [its in (None, i % QUARTERS) for i in range(len(targets))]
        for result in pool.map(lambda target, far: fuzz_one(target, seconds, far), targets, beyond):
            tally.add(result)
    return tally
