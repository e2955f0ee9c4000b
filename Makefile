.PHONY: demo test test-all test-full test-corpus platforms arm64 fuzz mutate torture nightly-nfs sanitize bench capacity sweep browsers docs serving remote soak lint-examples build man deb test-deb image format fixtures clean

# Encodes the frames of a bundled example into segments in ./demo. Installs what it needs.
demo:
	scripts/demo

# Checks format and warnings, and runs all tests, in some minutes. Installs what it needs.
test:
	scripts/test

# Runs all tests, for a night; PARTS selects some. CONTRIBUTING.md lists what each part proves.
test-all:
	scripts/test-all $(PARTS)

# Runs the tests of `make test` with full storms and sessions of a day.
test-full:
	scripts/setup test
	TEST_EXTENT=full scripts/run-tests

# Tests the program with real sessions (CORPUS=DIR), other programs' test images (BAD_IMAGES=DIR) and recorders' own
# files (SAMPLES=DIR).
test-corpus:
	scripts/setup test
	SESSION_CORPUS="$(or $(CORPUS),../shared/corpus)" BAD_IMAGES="$(or $(BAD_IMAGES),../shared/bad-images)" \
	  RECORDER_SAMPLES="$(or $(SAMPLES),../shared/samples)" scripts/run-tests ProgramTests InputTests FinishedSessionTests

# Builds and tests on each supported release of Debian; RELEASES selects some. Needs root and a Debian mirror.
platforms:
	scripts/setup platforms-host
	scripts/platforms --page Benchmarks/PLATFORMS.md $(RELEASES)

# Runs the C modules as arm64 programs under an emulator, and compares them with those of x86-64.
arm64:
	scripts/setup arm64
	. scripts/environment && scripts/arm64 || [ $$? = 77 ]

# Fuzzes every reader of untrusted bytes with libFuzzer for MINUTES minutes in all; TARGETS selects some.
MINUTES ?= 1
fuzz:
	scripts/fuzz $$(($(MINUTES) * 60)) $(TARGETS)

# Encodes spools of N mutated batches and checks every promise; SEED selects other mutations.
N ?= 10000
SEED ?= 1
mutate:
	scripts/setup test
	scripts/build
	. scripts/environment && /usr/bin/python3 Tests/torture/mutate.py .build/release/encoder-worker --count $(N) --seed $(SEED)

# Kills a worker before every call that changes a file, fails every call once, fills disks, cuts the power, and encodes
# 2 000 batches with workers killed at random. Repeats the last part until the minutes are over. Runs the mutated
# batches, too, and RUNS runs of recorders whose collectors and workers are stopped at random.
RUNS ?= 100
torture: mutate
	scripts/setup torture
	scripts/build
	. scripts/environment && ENCODER_WORKER=.build/release/encoder-worker \
	  /usr/bin/python3 Tests/torture/torture.py --minutes $(MINUTES)
	. scripts/environment && /usr/bin/python3 Tests/torture/restarts.py .build/release/encoder-worker --runs $(RUNS) --jobs 2

# Tests hosts that share a spool over real NFS, ROUNDS times with each kind of mount; in a virtual machine if this
# kernel has no NFS.
ROUNDS ?= 5
nightly-nfs:
	scripts/nightly-nfs --rounds $(ROUNDS) --seed $(SEED)

# Runs all tests under ThreadSanitizer and AddressSanitizer.
sanitize:
	scripts/sanitize

# Compares the worker with stock ffmpeg over real sessions, or CORPUS=DIR, in some 70 minutes on two cores; ROUNDS=1 is
# sooner and less exact. PARTS selects some of: jpeg png webp large phone sandbox decoding batches jobs startup finished
# scale profile. Only a run of all parts over the usual sessions writes Benchmarks/RESULTS.md and the README's figures.
# BASE=PROGRAM compares the instructions and the CPU of this build with those of another build of encoder-worker.
bench:
	scripts/setup bench
	scripts/build
	. scripts/environment && /usr/bin/python3 Benchmarks/bench.py --rounds $(ROUNDS) $(if $(BASE),--base "$(BASE)") \
	  $(if $(CORPUS),--corpus "$(CORPUS)") $(PARTS)

# Estimates the needs of a million sessions a day, by arithmetic and simulation.
capacity:
	scripts/setup capacity
	. scripts/environment && /usr/bin/python3 Benchmarks/capacity.py

# Measures x264's settings over real sessions, or CORPUS=DIR: CPU, bytes, similarity, legibility.
sweep:
	scripts/setup sweep
	scripts/build
	. scripts/environment && /usr/bin/python3 Benchmarks/sweep.py $(CORPUS)

# Plays segments, films, the player page and colours in Chromium, Firefox ESR and WebKitGTK, and checks screenshots;
# BROWSERS selects some, ONLY some parts: segments films clips idle archives animations hls page controls colours.
# PHOTOS=DIR adds photographs, CORPUS=DIR real sessions, HLS_JS=FILE plays HLS through that copy of hls.js.
browsers:
	scripts/setup browsers
	scripts/build
	. scripts/environment && CORPUS="$(CORPUS)" /usr/bin/python3 Tests/browsers/browsers.py $(BROWSERS) \
	  $(if $(ONLY),$(ONLY:%=--only %),--page Benchmarks/BROWSERS.md)

# Builds the library's documentation as a web site in .build/docs.
docs:
	scripts/setup build
	scripts/docs

# Measures the cost of `serve`: a list of a thousand sessions, and two hundred clients for a minute.
serving:
	scripts/setup demo
	scripts/build
	. scripts/environment && /usr/bin/python3 Benchmarks/serving.py .build/release/encoder-worker --seconds $(SECONDS)
SECONDS ?= 60

# Measures the cost of a queue and a store against a spool, over real sessions, or CORPUS=DIR.
remote:
	scripts/setup remote
	scripts/build
	. scripts/environment && /usr/bin/python3 Benchmarks/remote.py $(CORPUS)

# Runs the worker on one CPU with as many live sessions as need 70 % of it: MINUTES minutes, half of them through a
# queue and a store. Checks that nothing is lost, and that memory and open files do not grow.
soak: MINUTES = 60
soak:
	scripts/setup soak
	scripts/build
	. scripts/environment && /usr/bin/python3 Benchmarks/soak.py .build/release/encoder-worker --minutes $(MINUTES)

# Checks the examples for batch engines with the tools of those engines.
lint-examples: build
	scripts/lint-examples

build:
	scripts/setup build
	scripts/build

# Makes the manual page, and completions for bash, zsh and fish: .build/share.
man: build
	packaging/share .build/release/encoder-worker .build/share

# Makes the Debian package: .build/deb/*.deb
deb:
	packaging/deb

# Tests the package in a clean Debian; needs root and a Debian mirror.
test-deb: deb
	packaging/test-deb .build/deb/*.deb

# Makes an OCI image archive in .build/image from Debian's packages alone, joins it with archives of other architectures
# that lie there, and tests all. Needs root and a Debian mirror.
image: deb
	packaging/image .build/deb/*.deb
	packaging/test-image .build/image/encoder-worker_*.oci.tar

format:
	swift format --in-place --recursive Sources Tests Fuzzing examples Package.swift

# Makes all fixtures again; needs python3-pil, zstd, ffmpeg, libheif-examples, libavif-bin and libjxl-tools.
fixtures:
	. scripts/environment && /usr/bin/python3 fixtures/generate.py
	. scripts/environment && /usr/bin/python3 fixtures/generate_formats.py
	. scripts/environment && /usr/bin/python3 fixtures/generate_colours.py
	. scripts/environment && /usr/bin/python3 fixtures/generate_modern.py

clean:
	rm -rf .build demo
