package jinja

import (
	"context"
	"time"

	"github.com/zincc-dev/zincc/runtime/text"
)

// RenderBoth is Render with a variable that is true, and with one that is false. Most templates ask for it at their end
// alone, whether to write some more. Then one render is enough. Of others without is nil: they take a second one.
func (t *Template) RenderBoth(ctx context.Context, variable string, vars *Dict, now time.Time) (spans, without []text.Span, err error) {
	defer t.recover(&err)
	vars.Set(variable, true)
	end, asks := t.ending(variable)
	known := 0 // bytes before the ending
	out := t.render(ctx, vars, now, nil, func(st *state) {
		st.run(t.body[:end])
		known = len(st.out.b)
		st.run(t.body[end:])
	})
	if !asks {
		return out.spans(), nil, nil
	}
	without = append([]text.Span{}, out.slice(0, known).spans()...)
	for _, s := range t.body[min(end+1, len(t.body)):] {
		without = append(without, text.Span{Text: s.(*dataStmt).text})
	}
	return out.spans(), without, nil
}

// ending is the last statement but for data, if it does nothing where a variable is false, of which no other asks; the
// end of the template if none does.
func (t *Template) ending(variable string) (at int, ok bool) {
	at = len(t.body)
	if t.names[variable] == 0 {
		return at, true
	}
	for at > 0 {
		at--
		if _, data := t.body[at].(*dataStmt); data {
			continue
		}
		s, ok := t.body[at].(*ifStmt)
		if !ok || len(s.arms) != 1 || len(s.otherwise) > 0 || t.names[variable] > 1 {
			break
		}
		cond := s.arms[0].cond
		if all, ok := cond.(*logicExpr); ok && !all.until {
			cond = all.items[0]
		}
		name, ok := cond.(*nameExpr)
		return at, ok && name.name == variable
	}
	return at, false
}
