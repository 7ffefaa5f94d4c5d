package sample

import (
	"math"
	"strings"
)

// penalties lowers the logits of tokens in the window (Keskar et al. 2019, and OpenAI's two).
func (s *Sampler) penalties() {
	if !s.p.penalizes() {
		return
	}
	repeat := s.p.Repeat
	if repeat == 0 {
		repeat = 1
	}
	s.set.change(func(id int32, l float64) float64 {
		if l > 0 {
			l /= repeat
		} else {
			l *= repeat
		}
		return l - s.p.Presence - s.p.Frequency*float64(s.counts[id])
	}, s.window)
}

// count keeps the window of the penalties: counts of its tokens, and a list of them in the
// order in which they came first.
func (s *Sampler) count() {
	if !s.p.penalizes() {
		return
	}
	n := len(s.history)
	s.add(s.history[n-1])
	if last := s.p.LastN; last > 0 && n > last {
		s.remove(s.history[n-1-last])
	}
}

func (s *Sampler) add(id int32) {
	if s.counts[id]++; s.counts[id] == 1 {
		s.window = append(s.window, id)
	}
}

func (s *Sampler) remove(id int32) {
	if s.counts[id]--; s.counts[id] > 0 {
		return
	}
	delete(s.counts, id)
	for i, x := range s.window {
		if x == id {
			s.window = append(s.window[:i], s.window[i+1:]...)
			return
		}
	}
}

// dry lowers the logits of tokens that would continue a repetition: where the tokens before a place are
// those at the end of the history, the token at that place would.
func (s *Sampler) dry() {
	if s.p.Multiplier == 0 {
		return
	}
	past := s.history
	if w := s.p.Window; w >= 0 && len(past) > w {
		past = past[len(past)-w:]
	}
	n := len(past)
	limit := s.unbroken(past)
	if n <= s.p.AllowedLength || limit < s.p.AllowedLength {
		return
	}
	longest := map[int32]int{}
	var ids []int32
	for i, length := range suffixes(past) {
		// past[i-length:i] are the last tokens of past.
		if length = min(length, limit); length < max(1, s.p.AllowedLength) {
			continue
		}
		id := past[i]
		if _, seen := longest[id]; !seen {
			ids = append(ids, id)
		}
		longest[id] = max(longest[id], length)
	}
	s.set.change(func(id int32, l float64) float64 {
		if s.breaks(id) {
			return l
		}
		return l - min(s.p.Multiplier*math.Pow(s.p.Base, float64(longest[id]-s.p.AllowedLength)), math.MaxFloat32)
	}, ids)
}

// suffixes returns for each place of a how many of the tokens before it are those at the end of a: the
// Z function of a from behind, in time linear in its length (Gusfield 1997, section 1.4).
func suffixes(a []int32) []int {
	n := len(a)
	z := make([]int, n) // z[i]: a[n-1-i-k] == a[n-1-k] for k < z[i]
	left, right := 0, 0
	for i := 1; i < n; i++ {
		if i < right {
			z[i] = min(right-i, z[i-left])
		}
		for i+z[i] < n && a[n-1-i-z[i]] == a[n-1-z[i]] {
			z[i]++
		}
		if i+z[i] > right {
			left, right = i, i+z[i]
		}
	}
	out := make([]int, n)
	for i := 1; i < n; i++ {
		out[n-i] = z[i] // the place behind a[n-1-i]
	}
	return out
}

// unbroken is how many tokens follow the last breaker, which may span several tokens.
func (s *Sampler) unbroken(past []int32) int {
	reach := 0
	for _, b := range s.p.Breakers {
		reach = max(reach, len(b))
	}
	if reach == 0 {
		return len(past)
	}
	tail := "" // the text behind a place, as much as a breaker can need of it
	for i := len(past) - 1; i >= 0; i-- {
		piece := s.piece(past[i])
		text := piece + tail
		for _, b := range s.p.Breakers {
			// The breaker begins in this piece; it ends in the token that is its last.
			if b == "" {
				continue
			}
			at := strings.LastIndex(text[:min(len(text), len(piece)+len(b)-1)], b)
			if at < 0 {
				continue
			}
			return len(past) - s.endOf(past, i, at+len(b))
		}
		tail = text[:min(len(text), reach)]
	}
	return len(past)
}

// endOf returns the place behind the token that holds byte n-1 of the text from token i on.
func (s *Sampler) endOf(past []int32, i, n int) int {
	for ; i < len(past) && n > 0; i++ {
		n -= len(s.piece(past[i]))
	}
	return i
}

// breaks says whether a token holds a breaker.
func (s *Sampler) breaks(id int32) bool {
	piece := s.piece(id)
	for _, b := range s.p.Breakers {
		if b != "" && strings.Contains(piece, b) {
			return true
		}
	}
	return false
}
