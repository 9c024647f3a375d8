"""Every libFuzzer target for a while, on top of its corpus."""
import concurrent.futures
import os
import re
import tempfile

from check.builds import build, introspect
from check.shell import CORES, LOGS, REPO, run, tail
from check.tally import Tally


def fuzz_one(target, seconds):
    name = target['name']
    seeds = os.path.join(REPO, 'fuzz', 'corpus', name)
    with tempfile.TemporaryDirectory(prefix='ct-fuzz-') as fresh:
        argv = [target['filename'][0], f'-max_total_time={seconds}', '-timeout=10', '-rss_limit_mb=2048',
                '-print_final_stats=1', f'-artifact_prefix={LOGS}/{name}-', fresh]
        argv += [seeds] if os.path.isdir(seeds) else []
        done = run(f'fuzz-{name}', argv, timeout=seconds + 120)
    tally = Tally(passed=1).took(done)
    if done.code != 0:
        return Tally().took(done).fail(f'{name}: exit {done.code}\n{tail(done.out)}')
    runs = re.search(r'stat::number_of_executed_units:\s*(\d+)', done.out)
    if not runs or int(runs.group(1)) < 20:
        return Tally().took(done).fail(f'{name}: fewer than 20 inputs were tried\n{tail(done.out, 8)}')
    return tally


def fuzz(seconds):
    _, tally = build('sanitized')
    if tally.failed:
        return tally
    targets = [t for t in introspect('sanitized', 'targets') if t['type'] == 'executable' and '/fuzz/' in t['filename'][0]]
    if not targets:
        return tally.fail('no fuzz targets were built')
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        for result in pool.map(lambda target: fuzz_one(target, seconds), targets):
            tally.add(result)
    return tally
