# Thin: meson builds, tests/run.py tests. `make help` lists what there is.
#
# Debian's own meson and python3 are named by their paths: a pip or pyenv shim earlier on PATH would bring other
# versions without Debian's libraries.

MESON  := /usr/bin/meson
NINJA  := /usr/bin/ninja
PYTHON := /usr/bin/python3
B      ?= build
# cloche and what it starts
PROGRAMS := src/cli/cloche src/egress/cloche-egress src/vault/cloche-vault
PREFIX ?= /usr/local
ifeq ($(origin CC),default)
CC := gcc
endif
export CC

.PHONY: all build deps check check-all check-vm quick test demo lint bench fuzz install uninstall deb runsc clean help

all: build

help:
	@echo 'make            build $(B)/src/cli/cloche (release, gcc); installs nothing, fetches two source packages once'
	@echo 'make deps       install the Debian packages that building needs'
	@echo 'make demo       install what is missing, build, and watch a dozen attacks being stopped'
	@echo 'make quick      after a change: build, style, unit tests but the slow ones, smoke tests of every room (two minutes)'
	@echo 'make test T=X   one unit program, one file of tests, one test, or all tests with X in their name'
	@echo 'make check      what every change is held to: unit, end-to-end and escape tests as root and as an ordinary user,'
	@echo '                sanitizers, fuzzers, linters; the last line counts them'
	@echo 'make check-all  the same without what check leaves out (docs/testing.md says what)'
	@echo 'make check-vm   the engine microvm, and the package and its units under a real systemd on cgroup v2, in QEMU (root; not part of check)'
	@echo 'make lint       checksrc, cppcheck, shellcheck, man pages, Python'
	@echo 'make runsc      build gVisor from its source (Go 1.26, two minutes) as $(B)/runsc, for its tests (docs/engines.md)'
	@echo 'make fuzz       each fuzz target for FUZZ_SECONDS (60)'
	@echo 'make bench      measure cloche beside other sandboxes and proxies; writes docs/performance.md'
	@echo 'make install    to PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make deb        a Debian package of it, in $(B)'
	@echo 'make clean      remove build directories (build-musl, fetched sources, stays)'

deps:
	@tools/deps build

$(B)/build.ninja:
	@tools/musl-libs || true
	$(MESON) setup $(B) --buildtype=release -Doptimization=2 --prefix=$(PREFIX) || \
	    { echo '`make deps` installs what building needs' >&2; exit 1; }

build: $(B)/build.ninja
	$(NINJA) -C $(B)

demo:
	@tools/deps demo
	@test -f $(B)/build.ninja || $(MAKE) --no-print-directory $(B)/build.ninja >/dev/null
	@$(NINJA) -C $(B) --quiet $(PROGRAMS)
	@demo/run $(B)/src/cli/cloche

# A module of Go like any other; the commit is named, so that everybody tests the same one.
RUNSC := gvisor.dev/gvisor/runsc@v0.0.0-20260905035102-160fafc42237

runsc: $(B)/build.ninja
	GOBIN='$(abspath $(B))' CGO_ENABLED=0 nice -n 5 go install '$(RUNSC)'

check check-all quick lint:
	@tools/deps check
	@$(PYTHON) tests/run.py $@

test:
	@tools/deps check
	@$(PYTHON) tests/run.py test '$(T)'

check-vm: deb
	@tools/deps vm
	@tools/deps check
	@tools/kernel build-check-vm/kernel
	@CLOCHE_TEST_KERNEL_ROOT='$(abspath build-check-vm/kernel)' $(PYTHON) tests/run.py test tests/e2e/test_microvm.py
	@CLOCHE_TEST_KERNEL_ROOT='$(abspath build-check-vm/kernel)' $(PYTHON) tests/run.py test tests/e2e/test_serve_microvm.py
	@CLOCHE_TEST_KERNEL_ROOT='$(abspath build-check-vm/kernel)' $(PYTHON) tests/run.py test 'microvm and (test_self_check_serve or test_self_check_mcp)'
	@CLOCHE_TEST_KERNEL_ROOT='$(abspath build-check-vm/kernel)' $(PYTHON) tests/run.py test tests/e2e/test_private_docker.py
	@$(PYTHON) tests/vm/run.py $$(ls -t $(B)/cloche_*.deb | head -n 1) build-check-vm

FUZZ_SECONDS ?= 60
fuzz:
	@tools/deps check
	@$(PYTHON) tests/run.py --fuzz-seconds $(FUZZ_SECONDS) fuzz

bench: $(B)/build.ninja
	@tools/deps bench
	@$(NINJA) -C $(B) --quiet $(PROGRAMS)
	@$(PYTHON) bench/run --cloche $(B)/src/cli/cloche --write docs/performance.md

install: build
	$(MESON) install -C $(B) --no-rebuild

uninstall:
	$(NINJA) -C $(B) uninstall

deb: build
	@tools/deb $(B)

clean:
	rm -rf build build-check-* build-mutants build-mutants-prove
