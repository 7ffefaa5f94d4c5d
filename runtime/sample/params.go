// Package sample chooses the next token from logits: it selects the few that matter instead of
// sorting all of a vocabulary, and draws by a seed, so that a choice depends on nothing but the
// parameters, the logits and the tokens before.
package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/zincc-dev/zincc/plans"
)

// Params say how the next token is chosen. The JSON names are those of the API, the order of
// the stages is that of llama.cpp unless Samplers says otherwise.
type Params struct {
	Temp      float64 `json:"temperature"` // 0: the most likely token
	TopK      int     `json:"top_k"`       // keep the k most likely; 0 or less: all
	TopP      float64 `json:"top_p"`       // keep the smallest set of at least this probability (Holtzman et al. 2020); 1: all
	MinP      float64 `json:"min_p"`       // keep what has at least this share of the top probability; 0: all
	Typical   float64 `json:"typical_p"`   // keep what is closest to the expected surprise (Meister et al. 2022), to this probability; 1: all
	TopNSigma float64 `json:"top_n_sigma"` // keep logits within n standard deviations of the largest; 0 or less: all

	XTCProbability float64 `json:"xtc_probability"` // how often to drop all but the least likely of those above the threshold; 0: never
	XTCThreshold   float64 `json:"xtc_threshold"`   // more than 0.5: never

	Repeat    float64 `json:"repeat_penalty"`    // divides positive logits of tokens in the window, multiplies others; 1 or 0: none
	Presence  float64 `json:"presence_penalty"`  // is taken from logits of tokens in the window
	Frequency float64 `json:"frequency_penalty"` // as often as they are there
	LastN     int     `json:"repeat_last_n"`     // tokens in the window, prompt included; 0: none; -1: all

	DRY

	Bias map[int32]float64 `json:"logit_bias"` // is added to the logits; -Inf forbids a token
	Seed uint64            `json:"seed"`

	Samplers []string `json:"samplers"` // the stages in their order; nil: Order
}

// DRY makes a token that would continue a repetition less likely, the more the longer the
// repetition is: by Multiplier * Base^(length - AllowedLength).
type DRY struct {
	Multiplier    float64  `json:"dry_multiplier"` // 0: none
	Base          float64  `json:"dry_base"`
	AllowedLength int      `json:"dry_allowed_length"`    // tokens that may be repeated at no cost
	Window        int      `json:"dry_penalty_last_n"`    // tokens looked at; 0: none; -1: all
	Breakers      []string `json:"dry_sequence_breakers"` // at most maxBreakers of maxBreaker bytes
}

// Bounds of what each choice has to do.
const (
	maxBreakers = 64
	maxBreaker  = 64
	maxStages   = 16 // of Params.Samplers
)

// Neutral returns parameters that draw from the model's own distribution.
func Neutral() Params {
	return Params{Temp: 1, TopP: 1, Typical: 1, XTCThreshold: 0.1, Repeat: 1, LastN: 64,
		DRY: DRY{Base: 1.75, AllowedLength: 2, Window: -1, Breakers: []string{"\n", ":", "\"", "*"}}}
}

// Defaults returns what the model's file asks for, Neutral for what it does not name, and a
// seed of its own for each call.
func Defaults(settings []plans.Setting) Params {
	p := Neutral()
	p.Seed = rand.Uint64()
	for _, s := range settings {
		x := widen(s.Value)
		switch s.Name {
		case "temp":
			p.Temp = x
		case "top_k":
			p.TopK = int(x)
		case "top_p":
			p.TopP = x
		case "min_p":
			p.MinP = x
		case "xtc_probability":
			p.XTCProbability = x
		case "xtc_threshold":
			p.XTCThreshold = x
		case "penalty_repeat":
			p.Repeat = x
		case "penalty_last_n":
			p.LastN = int(x)
		}
	}
	return p
}

// widen returns the number that people wrote where the file has x: 0.6, not 0.6000000238.
func widen(x float32) float64 {
	wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	if err != nil {
		return float64(x)
	}
	return wide
}

// Greedy reports whether the largest logit is taken always, as a device can do it.
func (p *Params) Greedy() bool {
	if p.Samplers != nil || len(p.Bias) > 0 || p.penalizes() || p.Multiplier != 0 {
		return false
	}
	// The most likely token is not always typical, and XTC is about to drop it.
	return p.TopK == 1 || p.Temp == 0 && (p.Typical == 0 || p.Typical >= 1) && p.XTCProbability == 0
}

// Likeliest are the parameters that take the largest logit and do nothing else: what Greedy ones come to.
func Likeliest() Params { return Params{Samplers: []string{"temperature"}} }

func (p *Params) penalizes() bool {
	return p.LastN != 0 && (p.Repeat != 1 && p.Repeat != 0 || p.Presence != 0 || p.Frequency != 0)
}

// Validate names the first field that is out of its range.
func (p *Params) Validate() error {
	const largest = math.MaxFloat32
	for _, f := range []struct {
		name     string
		have     float64
		min, max float64
		want     string
	}{
		{"temperature", p.Temp, 0, largest, "0 or more"},
		{"top_k", float64(p.TopK), -1, math.MaxInt32, "0 or more"},
		{"top_p", p.TopP, 0, 1, "0 to 1"},
		{"min_p", p.MinP, 0, 1, "0 to 1"},
		{"typical_p", p.Typical, 0, 1, "0 to 1"},
		{"top_n_sigma", p.TopNSigma, -largest, largest, "a number"},
		{"xtc_probability", p.XTCProbability, 0, 1, "0 to 1"},
		{"xtc_threshold", p.XTCThreshold, 0, 1, "0 to 1"},
		{"repeat_penalty", p.Repeat, 0, largest, "0 or more"},
		{"presence_penalty", p.Presence, -largest, largest, "a number"},
		{"frequency_penalty", p.Frequency, -largest, largest, "a number"},
		{"repeat_last_n", float64(p.LastN), -1, math.MaxInt32, "-1 or more"},
		{"dry_multiplier", p.Multiplier, 0, largest, "0 or more"},
		{"dry_base", p.Base, 0, largest, "0 or more"},
		{"dry_allowed_length", float64(p.AllowedLength), 0, math.MaxInt32, "0 or more"},
		{"dry_penalty_last_n", float64(p.Window), -1, math.MaxInt32, "-1 or more"},
	} {
		if !(f.have >= f.min && f.have <= f.max) {
			return &Error{f.name, fmt.Sprintf("is %v, want %s", f.have, f.want)}
		}
	}
	for id, b := range p.Bias {
		if !(b <= largest) || id < 0 {
			return &Error{"logit_bias", fmt.Sprintf("of token %d is %v, want a number, of a token of 0 or more", id, b)}
		}
	}
	switch {
	case len(p.Breakers) > maxBreakers:
		return &Error{"dry_sequence_breakers", fmt.Sprintf("has %d texts, want at most %d", len(p.Breakers), maxBreakers)}
	case len(p.Samplers) > maxStages:
		return &Error{"samplers", fmt.Sprintf("has %d stages, want at most %d", len(p.Samplers), maxStages)}
	}
	for i, b := range p.Breakers {
		if len(b) > maxBreaker {
			return &Error{"dry_sequence_breakers", fmt.Sprintf("has a text of %d bytes, the %dth, want at most %d", len(b), i+1, maxBreaker)}
		}
	}
	for _, name := range p.Samplers {
		if stageOf(name) == nil {
			return &Error{"samplers", fmt.Sprintf("has %q, want some of %v", name, Order())}
		}
	}
	return nil
}

// Error says what is wrong with a field of Params, by its JSON name.
type Error struct{ Field, Problem string }

func (e *Error) Error() string { return e.Field + " " + e.Problem }

// Order returns the names of the stages in the order of llama.cpp.
func Order() []string {
	var names []string
	for i := range stages {
		names = append(names, stages[i].name)
	}
	return names
}

func stageOf(name string) *stage {
	for i := range stages {
		if stages[i].name == name || slices.Contains(stages[i].aliases, name) {
			return &stages[i]
		}
	}
	return nil
}
