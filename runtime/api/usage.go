package api

import (
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// usage is OpenAI's count of tokens.
type usage struct {
	Prompt        int `json:"prompt_tokens"`
	Completion    int `json:"completion_tokens"`
	Total         int `json:"total_tokens"`
	PromptDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func usageOf(u engine.Usage) *usage {
	o := &usage{Prompt: u.Prompt, Completion: u.Completion, Total: u.Prompt + u.Completion}
	o.PromptDetails.Cached = u.Cached
	o.CompletionDetails.Reasoning = u.Reasoning
	return o
}

// sumChoice adds the usage of an answer, one of several to the same prompt, which counts with the first.
func sumChoice(total, u engine.Usage, first bool) engine.Usage {
	if !first {
		u.Prompt, u.Cached = 0, 0
	}
	return sum(total, u)
}

// timings are llama-server's.
type timings struct {
	Cached             int     `json:"cache_n"`
	Prompt             int     `json:"prompt_n"`
	PromptMS           float64 `json:"prompt_ms"`
	PromptPerToken     float64 `json:"prompt_per_token_ms"`
	PromptPerSecond    float64 `json:"prompt_per_second"`
	Predicted          int     `json:"predicted_n"`
	PredictedMS        float64 `json:"predicted_ms"`
	PredictedPerToken  float64 `json:"predicted_per_token_ms"`
	PredictedPerSecond float64 `json:"predicted_per_second"`
	QueueMS            float64 `json:"queue_ms"`
	Drafted            int     `json:"draft_n,omitempty"`
	DraftHeld          *int    `json:"draft_n_accepted,omitempty"` // with draft_n
}

func timingsOf(u engine.Usage) *timings {
	t := &timings{Cached: u.Cached, Prompt: u.Prompt - u.Cached, PromptMS: ms(u.Prefill), Predicted: u.Completion, PredictedMS: ms(u.Decode), QueueMS: ms(u.Queue), Drafted: u.Guessed}
	if u.Guessed > 0 {
		t.DraftHeld = &u.Held
	}
	t.PromptPerToken, t.PromptPerSecond = each(u.Prefill, t.Prompt)
	t.PredictedPerToken, t.PredictedPerSecond = each(u.Decode, t.Predicted)
	return t
}

// each returns the milliseconds of one of n that took d together, and how many a second holds.
func each(d time.Duration, n int) (perMS, perSecond float64) {
	if n <= 0 || d <= 0 {
		return 0, 0
	}
	return ms(d) / float64(n), float64(n) / d.Seconds()
}

// logprobs has the log probabilities of chat completions.
type logprobs struct {
	Content []tokenLogprob `json:"content"`
	Refusal *string        `json:"refusal"`
}

type tokenLogprob struct {
	topLogprob
	Top []topLogprob `json:"top_logprobs"`
}

type topLogprob struct {
	ID      int32   `json:"id"`
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func topOf(id int32, text string, logprob float32) topLogprob {
	t := topLogprob{ID: id, Token: text, Logprob: max(logprob, -9999), Bytes: []int{}}
	for _, b := range []byte(text) {
		t.Bytes = append(t.Bytes, int(b))
	}
	return t
}

func logprobsOf(tokens []engine.Token) *logprobs {
	l := &logprobs{Content: []tokenLogprob{}}
	for _, t := range tokens {
		l.Content = append(l.Content, logprobOf(t))
	}
	return l
}

func logprobOf(t engine.Token) tokenLogprob {
	x := tokenLogprob{topLogprob: topOf(t.ID, t.Text, t.Logprob), Top: []topLogprob{}}
	for _, a := range t.Top {
		x.Top = append(x.Top, topOf(a.ID, a.Text, a.Logprob))
	}
	return x
}

func ids(tokens []engine.Token) []int32 {
	all := make([]int32, len(tokens))
	for i, t := range tokens {
		all[i] = t.ID
	}
	return all
}
