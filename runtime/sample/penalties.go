package sample

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

// count keeps the window of the penalties: its tokens, once each, and how often each is there.
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
		s.places[id] = len(s.window)
		s.window = append(s.window, id)
	}
}

func (s *Sampler) remove(id int32) {
	if s.counts[id]--; s.counts[id] > 0 {
		return
	}
	at, end := s.places[id], len(s.window)-1
	last := s.window[end]
	s.window[at], s.places[last] = last, at
	s.window = s.window[:end]
	delete(s.counts, id)
	delete(s.places, id)
}
