package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// metrics counts what the server does. A metric that vLLM has is served under vLLM's
// name, too, so that routers written for it can read it.
type metrics struct {
	registry *prometheus.Registry
	ignored  prometheus.Counter
	leftOut  *prometheus.CounterVec
	counters map[string][]*prometheus.CounterVec
	times    map[string][]*prometheus.HistogramVec
}

const modelLabel = "model_name"

// Buckets of histograms, in seconds and in tokens.
var (
	longTimes  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	shortTimes = []float64{.0005, .001, .002, .003, .005, .0075, .01, .015, .02, .03, .05, .075, .1, .25, .5, 1}
	amounts    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
)

// counterRows and histogramRows: our name, vLLM's names, what it is.
var counterRows = []struct {
	name string
	vllm []string
	help string
	ends bool // counted by how answers ended
}{
	{"prompt_tokens_total", []string{"prompt_tokens_total"}, "Tokens of prompts.", false},
	{"generation_tokens_total", []string{"generation_tokens_total"}, "Tokens generated.", false},
	{"prefix_tokens_queried_total", []string{"prefix_cache_queries_total", "gpu_prefix_cache_queries_total"}, "Tokens of prompts that were looked up in the cache.", false},
	{"prefix_tokens_hit_total", []string{"prefix_cache_hits_total", "gpu_prefix_cache_hits_total"}, "Tokens of prompts that were found there.", false},
	{"requests_total", []string{"request_success_total"}, "Answers, by how they ended.", true},
}

var histogramRows = []struct {
	name    string
	vllm    []string
	help    string
	buckets []float64
}{
	{"time_to_first_token_seconds", []string{"time_to_first_token_seconds"}, "From the request to its first token.", longTimes},
	{"inter_token_seconds", []string{"inter_token_latency_seconds"}, "Between tokens of an answer.", shortTimes},
	{"time_per_output_token_seconds", []string{"time_per_output_token_seconds", "request_time_per_output_token_seconds"}, "Of an answer, behind its first token.", shortTimes},
	{"e2e_seconds", []string{"e2e_request_latency_seconds"}, "From the request to its end.", longTimes},
	{"queue_seconds", []string{"request_queue_time_seconds"}, "Waiting for a slot.", longTimes},
	{"prefill_seconds", []string{"request_prefill_time_seconds"}, "Reading the prompt.", longTimes},
	{"decode_seconds", []string{"request_decode_time_seconds"}, "Generating.", longTimes},
	{"request_prompt_tokens", []string{"request_prompt_tokens"}, "Tokens of a prompt.", amounts},
	{"request_generation_tokens", []string{"request_generation_tokens"}, "Tokens of an answer.", amounts},
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		ignored:  prometheus.NewCounter(prometheus.CounterOpts{Name: "zincrun_ignored_fields_total", Help: "Unknown fields of requests."}),
		leftOut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zincrun_left_out_total", Help: "What requests asked for and went on without, by its kind."}, []string{"what"}),
		counters: map[string][]*prometheus.CounterVec{},
		times:    map[string][]*prometheus.HistogramVec{},
	}
	m.registry.MustRegister(m.ignored, m.leftOut, gauges{s}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, row := range counterRows {
		for i, name := range bothNames(row.name, row.vllm, s.o.Compat) {
			labels := []string{modelLabel}
			if row.ends {
				labels = append(labels, []string{"finish_reason", "finished_reason"}[min(i, 1)]) // ours, vLLM's
			}
			c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: row.help}, labels)
			m.registry.MustRegister(c)
			m.counters[row.name] = append(m.counters[row.name], c)
		}
	}
	for _, row := range histogramRows {
		for _, name := range bothNames(row.name, row.vllm, s.o.Compat) {
			h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: row.help, Buckets: row.buckets}, []string{modelLabel})
			m.registry.MustRegister(h)
			m.times[row.name] = append(m.times[row.name], h)
		}
	}
	// A counter that has not counted yet is 0, not absent.
	for _, served := range s.o.Served {
		for _, row := range counterRows {
			if !row.ends {
				m.count(row.name, 0, served.Names[0])
			}
		}
	}
	return m
}

func bothNames(own string, vllm []string, compat bool) []string {
	names := []string{"zincrun_" + own}
	if compat {
		for _, name := range vllm {
			names = append(names, "vllm:"+name)
		}
	}
	return names
}

func (m *metrics) count(name string, n int, labels ...string) {
	for _, c := range m.counters[name] {
		c.WithLabelValues(labels...).Add(float64(n))
	}
}

func (m *metrics) observe(name, model string, x float64) {
	for _, h := range m.times[name] {
		h.WithLabelValues(model).Observe(x)
	}
}

func (m *metrics) firstToken(model string, d time.Duration) {
	m.observe("time_to_first_token_seconds", model, d.Seconds())
}

func (m *metrics) gap(model string, d time.Duration) {
	m.observe("inter_token_seconds", model, d.Seconds())
}

// done counts an answer that took d since its request.
func (m *metrics) done(model, reason string, u engine.Usage, d time.Duration) {
	m.count("prompt_tokens_total", u.Prompt, model)
	m.count("generation_tokens_total", u.Completion, model)
	m.count("prefix_tokens_queried_total", u.Prompt, model)
	m.count("prefix_tokens_hit_total", u.Cached, model)
	m.count("requests_total", 1, model, reason)
	m.observe("e2e_seconds", model, d.Seconds())
	m.observe("queue_seconds", model, u.Queue.Seconds())
	m.observe("prefill_seconds", model, u.Prefill.Seconds())
	m.observe("decode_seconds", model, u.Decode.Seconds())
	if u.Completion > 1 {
		m.observe("time_per_output_token_seconds", model, u.Decode.Seconds()/float64(u.Completion-1))
	}
	m.observe("request_prompt_tokens", model, float64(u.Prompt))
	m.observe("request_generation_tokens", model, float64(u.Completion))
}

// failed counts a request that did not come to its end.
func (m *metrics) failed(model string, e *Error) {
	reason := "error"
	if e.Kind == clientGone {
		reason = "cancelled"
	}
	m.count("requests_total", 1, model, reason)
}

// gauges are read from the engines when somebody asks.
type gauges struct{ s *Server }

var gaugeRows = []struct {
	name string
	vllm []string
	help string
	read func(engine.Stats) float64
}{
	{"requests_waiting", []string{"num_requests_waiting"}, "Requests in the queue.", func(s engine.Stats) float64 { return float64(s.Waiting) }},
	{"requests_running", []string{"num_requests_running"}, "Requests being answered.", func(s engine.Stats) float64 { return float64(running(s)) }},
	{"prefix_tokens_kept", nil, "Tokens of prompts that slots hold for later ones; what several hold counts once.", func(s engine.Stats) float64 { return float64(s.Cache.Tokens) }},
	{"prefix_pieces_kept", nil, "Pieces of prompts that slots hold for later ones.", func(s engine.Stats) float64 { return float64(s.Cache.Nodes) }},
	{"host_cache_pieces", nil, "Pieces of prompts in the host's memory for later ones.", func(s engine.Stats) float64 { return float64(s.KeptPieces) }},
	{"host_cache_bytes", nil, "Their bytes.", func(s engine.Stats) float64 { return float64(s.KeptBytes) }},
	{"states_used", nil, "Recurrent states that are kept for later prompts.", func(s engine.Stats) float64 { return float64(s.Cache.States) }},
	{"state_bytes", nil, "Their bytes.", func(s engine.Stats) float64 { return float64(s.Cache.StateBytes) }},
	{"pages_total", nil, "Pages of the pool; 0 where caches have none.", func(s engine.Stats) float64 { return float64(s.Pages.Total) }},
	{"pages_free", nil, "Pages that nobody has.", func(s engine.Stats) float64 { return float64(s.Pages.Free) }},
	{"pages_held", nil, "Pages that slots have, for requests of now or later; what several have counts once.", func(s engine.Stats) float64 { return float64(s.Pages.Held) }},
	{"pages_shared", nil, "Pages that several slots have.", func(s engine.Stats) float64 { return float64(s.Pages.Shared) }},
	{"kv_cache_usage_ratio", []string{"kv_cache_usage_perc", "gpu_cache_usage_perc"}, "Positions of the cache in use, 0 to 1.", func(s engine.Stats) float64 { return usedShare(s) }},
}

// sumRows are counters that engines keep.
var sumRows = []struct {
	name string
	vllm []string
	help string
	read func(engine.Stats) int64
}{
	{"prefix_tokens_forgotten_total", nil, "Tokens of prompts that no slot holds any more.", func(s engine.Stats) int64 { return s.Cache.ForgottenTokens }},
	{"prefix_tokens_restored_total", nil, "Tokens of prompts that were found in the host's memory, or kept over a restart.", func(s engine.Stats) int64 { return s.RestoredTokens }},
	{"submissions_ahead_total", nil, "Submissions made while the one before ran, so that the device did not wait.", func(s engine.Stats) int64 { return s.Ahead }},
	{"steps_prepared_total", nil, "Steps of decoding decided while the one before ran, so that the device waited for the choice of tokens alone.", func(s engine.Stats) int64 { return s.Prepared }},
	{"tokens_guessed_total", []string{"spec_decode_num_draft_tokens_total"}, "Tokens that were guessed, since the text repeated itself, and had rows in steps.", func(s engine.Stats) int64 { return s.Guessed }},
	{"tokens_held_total", []string{"spec_decode_num_accepted_tokens_total"}, "Tokens that were guessed, and came so.", func(s engine.Stats) int64 { return s.Held }},
	{"states_evicted_total", nil, "Recurrent states that gave way to others.", func(s engine.Stats) int64 { return s.Cache.EvictedStates }},
	{"preemptions_total", []string{"num_preemptions_total"}, "Requests that gave their slots up, for the pages of others or for a higher priority.", func(s engine.Stats) int64 { return s.Preempted }},
	{"states_unsaved_total", nil, "Recurrent states for which there was no memory.", func(s engine.Stats) int64 { return s.Unsaved }},
}

// reasonRows are what was decided, by the reason.
var reasonRows = []struct {
	name, label, help string
	kind              prometheus.ValueType
	read              func(engine.Stats) map[string]int64
}{
	{"admissions_total", "reuse", "Requests that got a slot, by where the tokens were that needed no computing: in the slot (own, answer), in another one (copied), nowhere (none).",
		prometheus.CounterValue, func(s engine.Stats) map[string]int64 { return s.Decided }},
	{"prompt_waits_total", "reason", "Steps in which a prompt was not read on, for the tokens of other requests (itl) or since another prompt was read first (order).",
		prometheus.CounterValue, func(s engine.Stats) map[string]int64 { return s.PromptWaits }},
	{"tokens_chosen_total", "by", "Tokens of answers, by what they were chosen by: the device chose the likeliest (device), its likeliest tokens decided (candidates), all logits were read (logits).",
		prometheus.CounterValue, func(s engine.Stats) map[string]int64 { return s.Chosen }},
	{"requests_waiting_for", "reason", "Requests in the queue, by what they wait for: the next free slot (slots), pages of the pool (pages), a higher priority (priority), another key (turn), their own key's requests (order).",
		prometheus.GaugeValue, func(s engine.Stats) map[string]int64 { return counts(s.WaitingFor) }},
}

func counts(m map[string]int) map[string]int64 {
	n := map[string]int64{}
	for name, x := range m {
		n[name] = int64(x)
	}
	return n
}

// decisions tells what an engine decided, and why. All that vLLM's requests can wait for, of what is named there, is
// room on the device: capacity.
func (g gauges) decisions(out chan<- prometheus.Metric, model string, stats engine.Stats) {
	for _, row := range sumRows {
		for _, name := range bothNames(row.name, row.vllm, g.s.o.Compat) {
			desc := prometheus.NewDesc(name, row.help, []string{modelLabel}, nil)
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(row.read(stats)), model)
		}
	}
	for _, row := range reasonRows {
		desc := prometheus.NewDesc("zincrun_"+row.name, row.help, []string{modelLabel, row.label}, nil)
		for reason, n := range row.read(stats) {
			out <- prometheus.MustNewConstMetric(desc, row.kind, float64(n), model, reason)
		}
	}
	if g.s.o.Compat {
		desc := prometheus.NewDesc("vllm:num_requests_waiting_by_reason", "Requests in the queue.", []string{modelLabel, "reason"}, nil)
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(stats.Waiting), model, "capacity")
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 0, model, "deferred")
	}
}

// Describe tells nothing: which models there are may change.
func (g gauges) Describe(chan<- *prometheus.Desc) {}

func (g gauges) Collect(out chan<- prometheus.Metric) {
	if g.s.o.Events != nil {
		st := g.s.o.Events.Stats()
		for _, row := range []struct {
			name, help string
			kind       prometheus.ValueType
			value      float64
		}{
			{"subscribers", "Routers that read the events.", prometheus.GaugeValue, float64(st.Subscribers)},
			{"sent_total", "Batches of events.", prometheus.CounterValue, float64(st.Events)},
			{"dropped_total", "Changes that came too fast to be told.", prometheus.CounterValue, float64(st.Dropped)},
			{"missed_total", "Messages that a router did not read in time.", prometheus.CounterValue, float64(st.Missed)},
		} {
			out <- prometheus.MustNewConstMetric(prometheus.NewDesc("zincrun_kv_events_"+row.name, row.help, nil, nil), row.kind, row.value)
		}
	}
	for _, served := range g.s.pool.all() {
		var stats engine.Stats
		loaded := 0.0
		g.s.pool.each(func(s *Served, m *Model) {
			if s != served {
				return
			}
			stats, loaded = m.Engine.Stats(), 1
			block, blocks := 1, m.Header.Slots*m.Header.Ctx
			if p := stats.Pages; p.Total > 0 {
				block, blocks = p.Positions, p.Total
			}
			for _, name := range bothNames("cache_config_info", []string{"cache_config_info"}, g.s.o.Compat) {
				desc := prometheus.NewDesc(name, "How the cache is divided.", []string{modelLabel, "block_size", "num_gpu_blocks"}, nil)
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1, served.Names[0], strconv.Itoa(block), strconv.Itoa(blocks))
			}
		})
		for _, row := range gaugeRows {
			for _, name := range bothNames(row.name, row.vllm, g.s.o.Compat) {
				desc := prometheus.NewDesc(name, row.help, []string{modelLabel}, nil)
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, row.read(stats), served.Names[0])
			}
		}
		g.decisions(out, served.Names[0], stats)
		for _, e := range stats.Entries {
			for name, x := range map[string]float64{"step_seconds_total": e.Time.Seconds(), "steps_total": float64(e.Steps), "step_rows_total": float64(e.Rows), "step_prompts_total": float64(e.Prompts)} {
				desc := prometheus.NewDesc("zincrun_"+name, "Of steps, by entry.", []string{modelLabel, "entry"}, nil)
				out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, x, served.Names[0], e.Name)
			}
			desc := prometheus.NewDesc("zincrun_step_predicted_ratio", "Measured to predicted time of steps.", []string{modelLabel, "entry"}, nil)
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, e.Ratio, served.Names[0], e.Name)
		}
		desc := prometheus.NewDesc("zincrun_model_loaded", "1 while the model is in memory.", []string{modelLabel}, nil)
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, loaded, served.Names[0])
	}
}

func handleMetrics(c *call) error {
	promhttp.HandlerFor(c.s.metrics.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(c.w, c.r)
	return nil
}
