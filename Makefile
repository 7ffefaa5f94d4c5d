# make run    compile the chat model in testdata for this computer and ask it two questions; needs Go only
# make test   all kinds of test, in minutes; installs the Debian packages that the tests need
# make test-all   lint and every case of every test, in half an hour; before a release, and after a change of many kernels
GO ?= go
MODEL := testdata/models/gopher-q4_k_m.gguf
CHAT := testdata/models/gopher-chat-q4_k_m.gguf

# The programs and their tests need no C compiler; only vkcheck has one.
export CGO_ENABLED = 0
# Tests run on Mesa's Vulkan for the CPU, unless another driver is named.
TEST_DRIVER := $(or $(VK_DRIVER_FILES),/usr/share/vulkan/icd.d/lvp_icd.json)

.PHONY: build install release run test test-all test-left vkcheck packages lint race race-server generate objects digests headers verify-tiny mutants emulate emulate-kernels emulate-plans fuzz interrupts conform conform-node conform-hub conform-agents conform-peer bench bench-gpu bench-serve tune tune-amd clean

build:
	$(GO) build -o bin/ ./cmd/...

# Programs into GOBIN, or GOPATH/bin.
install:
	$(GO) install ./cmd/...

# Archives, a Debian package and a container image for each platform, with checksums, in dist.
release:
	$(GO) run ./internal/tools/release -o dist

run: build
	@mkdir -p .build
	bin/zincc compile $(CHAT) --target native -o .build/gopher-chat.bin
	bin/zincrun chat .build/gopher-chat.bin --temp 0 -p "What does strings.Cut do?"
	bin/zincrun chat .build/gopher-chat.bin --temp 0 --think off -p "What does sort.Search do?"

# Fewer collections of garbage take a quarter off the compiler and half off staticcheck, for 500 MB; test binaries need no tables of symbols.
test test-all test-left emulate lint: export GOGC = 400
# What only debuggers want takes a sixth of building all tests.
test test-all test-left lint vkcheck generate: export GOFLAGS += -gcflags=all=-dwarf=false
# Mesa's compiler does without LLVM's optimizations: most kernels of tests run once.
test test-all emulate: export GALLIVM_PERF = nopt
# go vet is lint's. The packages that take longest begin first: runtime/verify would be last, alone for 50 s. One package more than there are
# processors runs at a time, since many tests have one thread.
TESTS = VK_DRIVER_FILES=$(TEST_DRIVER) $(GO) test -p=$$(($$(getconf _NPROCESSORS_ONLN) + 1)) -vet=off -ldflags='-s -w' -timeout 30m
PACKAGES := . ./codegen/kernels/matmul ./runtime/verify ./codegen/kernels/attention ./...

# Sweeps are sampled, and the longest runs of whole plans left out: docs/testing.md
test: packages
	$(TESTS) -short $(PACKAGES)

test-all: packages lint vkcheck
	$(TESTS) $(PACKAGES)

# What -short leaves out as a whole: continuous integration runs it, too.
test-left: export GALLIVM_PERF = nopt
test-left: packages
	$(TESTS) . ./codegen ./codegen/radv/emulate ./cmd/zincrun -run '^Test(HybridsVerify|FixedPoint|CandidatesAddInOneOrder|FewQuestions|NearChoice|Rank|Readme|Preempted|Together)$$'

# The records of runtime/vulkan/vk beside those of vulkan-go/vulkan; needs gcc.
vkcheck: packages
	cd runtime/vulkan/vk/vkcheck && CGO_ENABLED=1 $(GO) test ./...

# What the tests need beside Go: SPIRV-Tools, a Vulkan driver, a browser, gcc.
packages:
	@.ci/packages

lint:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt: $$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Looks for data races in what has goroutines: the engine, the server and its commands; needs gcc. RACE="./runtime/api -run TestDrain" asks for less.
# Tests that compute a model on the host take minutes there, and have the engine's goroutines only.
RACE ?= ./internal/cli ./runtime/engine ./runtime/api -skip '^Test(SameBits|Greedy|Suppressed|EndOfGeneration|Vectors|VectorsEnd|Format.*|ForcedRuns|WindowsInPages|CopiedRows)$$'
race:
	CGO_ENABLED=1 $(GO) test -race -short -vet=off -timeout 30m $(RACE)

# The same of the program: a server that is built so answers under load and is drained; the first race ends it.
race-server:
	@mkdir -p .build/race
	CGO_ENABLED=1 $(GO) build -race -o .build/race/ ./cmd/zincrun ./cmd/zincc
	.build/race/zincc compile $(CHAT) --target native --slots 4 --ctx 1024 --force -o .build/race/chat.bin >/dev/null
	$(GO) build -o .build/race/ ./internal/tools/loadgen
	@GORACE="halt_on_error=1 exitcode=66" .build/race/zincrun serve .build/race/chat.bin --port 8097 --drain 2s 2>.build/race/log & server=$$!; \
	for i in $$(seq 100); do curl -sf -o /dev/null http://127.0.0.1:8097/ready && break; sleep 0.2; done; \
	.build/race/loadgen http://127.0.0.1:8097 --users 4 --requests 16 -p 64 -n 24; load=$$?; kill -TERM $$server; wait $$server && exit $$load || { grep -v '^{' .build/race/log; exit 1; }

# Rewrites the z*.go files from the Khronos registries.
generate:
	$(GO) generate ./...

# Rewrites the machine code that zincc holds of kernels, for all kinds of processor; needs LLVM 19. CHECK=--check compares.
objects:
	$(GO) run ./internal/tools/makeobjects $(CHECK)

# AMD's machine code of every kernel that the tests of kernels know, and of plans of all models in testdata, executed without a card:
# docs/backends/amd.md
emulate:
	$(MAKE) -j2 emulate-kernels emulate-plans

emulate-kernels:
	VK_DRIVER_FILES=$(TEST_DRIVER) $(GO) test -short -timeout 60m -vet=off $(addprefix ./codegen/kernels/,matmul attention recurrent rowwise) -emulate

emulate-plans:
	$(GO) test -vet=off -timeout 60m ./codegen/radv/emulate -whole

# Breaks the source in known ways, one at a time, and wants a test to fail: docs/testing.md
mutants:
	VK_DRIVER_FILES=$(TEST_DRIVER) $(GO) run ./internal/tools/mutants $(ONLY)
	$(GO) test . -count=1 -v -run TestBadPlans | grep -v '^=== '

# Proves plans for all targets and compares them, and what kernels are offered, with the committed digests.
# A change that means to change some: make digests UPDATE=-update
digests:
	$(GO) run ./internal/tools/digests $(if $(UPDATE),--update)
	$(GO) test ./codegen -run '^TestOffers$$' -every $(UPDATE)

# An input that is interesting is shortened five times, not for a minute: time is for new ones.
FUZZTIME ?= 10s
fuzz:
	@set -e; for f in $$(git grep -l '^func Fuzz' -- '*_test.go'); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$f); do \
			echo "$$f $$name"; $(GO) test ./$$(dirname $$f) -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x; \
		done; \
	done

# What compiling takes, of models of published shapes, in time and memory, with nothing kept from before:
#	make headers HEADERS="--target gfx1201 --shape glm47-flash,gemma4-12b"
headers: build
	$(GO) run ./internal/tools/headers $(HEADERS)

# Every dispatch of a tiny model of each architecture and variant beside the oracle, on the processor and through Vulkan.
verify-tiny: build
	@rm -rf .build/tiny && mkdir -p .build/tiny
	$(GO) test ./ir/frontend -count=1 -run '^TestLogits$$' -models $(CURDIR)/.build/tiny
	@export VK_DRIVER_FILES=$(TEST_DRIVER); for model in .build/tiny/*.gguf; do for on in cpu:cpu llvmpipe:vulkan; do \
		bin/zincc compile $$model --target $${on%:*} --slots 12 --ctx 96 --force -o .build/tiny/plan.bin >/dev/null && \
		echo "$$(basename $$model) $$(bin/zincrun verify .build/tiny/plan.bin --device $${on#*:} | tail -1)" || echo "$$(basename $$model) has no plan for $${on%:*}"; \
	done; done | tee .build/tiny/said
	@awk '{ d = $$2; for (i = 2; i < NF; i++) if ($$(i + 1) ~ /^comparisons/) { n[d] += $$i; bad += $$(i + 2); plans++ } } \
		END { for (d in n) print d ": " n[d] " comparisons"; print plans " of " NR " plans, " bad " failed"; exit plans != NR || bad > 0 }' .build/tiny/said

# Sends 200 signals at random times to all commands, which must leave nothing half-written:
#	make interrupts INTERRUPTS="-n 50 --only profile"
interrupts: build
	VK_DRIVER_FILES=$(TEST_DRIVER) $(GO) run ./internal/tools/interrupts $(INTERRUPTS) $(MODEL)

# The server against Go SDKs, OpenAI's description and a browser, and the files of deploy against theirs;
# OPENAPI=openapi.yml takes the whole description.
conform:
	cd internal/conform/node && npm ci --silent
	cd internal/conform && $(GO) test -skip '^TestNode$$' . ./grammars

# The server against npm clients; needs Node 20.
conform-node:
	cd internal/conform/node && npm ci --silent
	cd internal/conform && $(GO) test -run '^TestNode$$' -count=1 -v .

# The hub of our own tests against Hugging Face's client for Node, and llama-server -hf: make conform-hub [LLAMA="env A=b llama-server"]
conform-hub:
	cd internal/conform/hub && npm ci --silent
	cd internal/conform && $(GO) test ./hub -count=1 -v -llama "$(or $(LLAMA),llama-server)"

# Claude Code, Codex, opencode and qwen-code, as npm has them, in a network of their own; needs Node 20 and 1.1 GB.
conform-agents:
	cd internal/conform/agents && npm ci --silent
	cd internal/conform && $(GO) test ./agents -count=1 -v

# Grammars with what others publish: the documents of the JSON-Schema-Test-Suite, and of schemas in files and folders how many are
# taken; masks of 10,000 states beside every token of a vocabulary, and how long they take, with the tokenizer.json of models:
#	make grammars SUITE=tests SCHEMAS="openapi.yml package/" TOKENIZERS=qwen/tokenizer.json,gemma/tokenizer.json
grammars:
	cd internal/conform && $(GO) run ./grammars suite $(SUITE) && $(GO) run ./grammars coverage $(SCHEMAS)
	cd internal/conform && $(GO) run ./grammars masks --states 10000 --tokenizer $(TOKENIZERS) $(SUITE) $(SCHEMAS)
	cd internal/conform && $(GO) run ./grammars split --tokenizer $(TOKENIZERS) $(SUITE)
	cd internal/conform && $(GO) run ./grammars bench --tokenizer $(TOKENIZERS) $(SCHEMAS)

# zincrun serve and llama-server asked the same: make conform-peer [PEER="env A=b"]
conform-peer: build
	$(GO) run ./internal/tools/peerapi run $(CHAT) --peer "$(PEER)"

bench: build
	@mkdir -p .build
	@set -e; for target in host llvmpipe; do \
		bin/zincc compile $(MODEL) --target $$target -o .build/gopher-$$target.bin >/dev/null; \
	done
	bin/zincrun bench .build/gopher-host.bin --device host -p 128 -n 64 -d 0,256 -r 3
	VK_DRIVER_FILES=$(TEST_DRIVER) bin/zincrun bench .build/gopher-llvmpipe.bin --device vulkan -p 128 -n 64 -d 0,256 -r 3

# zincrun and llama.cpp by turns on an NVIDIA GPU, rates and starts as Markdown tables:
#   make bench-gpu MODELS="a.gguf gpt-oss-20b llama-8b:IQ3_S" [BENCH="-p 512 -n 128 -d 0,16384 --ctx 20k"] [PEER="env A=b"]
bench-gpu: build
	$(GO) run ./internal/tools/benchgpu --peer "$(PEER)" $(BENCH) $(MODELS)

# zincrun serve and llama-server by turns under users and arrivals, tokens a second and latencies:
#   make bench-serve MODELS="a.gguf b.gguf" [LOAD="--cases 1,8 --rounds 2"] [PEER="env A=b"]
bench-serve: build
	$(GO) run ./internal/tools/loadgen compare $(LOAD) --peer "$(PEER)" $(MODELS)

# Times all candidates of every call site on this computer's GPU, and keeps what is best:
#   make tune TARGET=sm_90 MODELS="a.gguf b.gguf" [ENTRY=decode/1]
# What AMD's compiler predicts is made anew for all AMD targets; headers of models are enough:
#   make tune-amd MODELS="a.gguf b.gguf"
tuned = $(or $(firstword $(wildcard codegen/target/*/$(1).jsonl)),$(1).jsonl)
ENTRY ?= all
tune: build
	@mkdir -p .build
	@set -e; for model in $(MODELS); do \
		bin/zincc compile $$model --target $(TARGET) --candidates=$(ENTRY) --force -o .build/tune.bin >/dev/null; \
		bin/zincrun tune .build/tune.bin -o $(call tuned,$(TARGET)); \
	done

tune-amd: build
	@set -e; for target in gfx1201 gfx1200 gfx1100 gfx1151; do \
		rm -f codegen/target/rdna/$$target.jsonl; \
		for on in $$target $$target-nomatrix; do \
			bin/zincc tune --target $$on -o codegen/target/rdna/$$target.jsonl $(MODELS) $(wildcard testdata/models/*.gguf) >/dev/null; \
		done; \
	done

clean:
	rm -rf bin .build
