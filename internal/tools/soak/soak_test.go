package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// A soak counts the answers that differ from those written alone, and stops where one fails.
func TestSoak(t *testing.T) {
	const answers, users, n = 4, 3, 50
	for _, test := range []struct {
		name  string
		wrong int64 // call of the writer, behind those alone, that gives another hash
		fails int64 // that fails
	}{{"right", 0, 0}, {"wrong", 17, 0}, {"failed", 0, 23}} {
		t.Run(test.name, func(t *testing.T) {
			var calls atomic.Int64
			broken := errors.New("broken")
			s := &soak{answers: answers, users: users, writer: func(_ context.Context, number int) (hash, error) {
				h := hash{byte(number)}
				switch calls.Add(1) - answers {
				case test.wrong:
					if test.wrong > 0 {
						h[1] = 1
					}
				case test.fails:
					if test.fails > 0 {
						return h, broken
					}
				}
				return h, nil
			}}
			err := s.run(t.Context(), n)
			if test.fails > 0 {
				if !errors.Is(err, broken) || s.compared >= n {
					t.Errorf("%d compared, error %v; want %v", s.compared, err, broken)
				}
				return
			}
			if err != nil || s.compared != n || s.tokens() != (answers+n)*answerTokens {
				t.Errorf("%d compared, %d tokens, error %v", s.compared, s.tokens(), err)
			}
			if want := min(int(test.wrong), 1); s.wrong != want {
				t.Errorf("%d wrong, want %d", s.wrong, want)
			}
		})
	}
}
