package lex

// longestText bounds the texts that Texts returns, in code points.
const longestText = 128

// Texts returns all texts of a language; false if there are more than most, or long ones.
func (p *Pool) Texts(t *Term, most int) (list []string, ok bool) {
	var text []rune
	var visit func(t *Term) bool
	visit = func(t *Term) bool {
		if t.nullable {
			list = append(list, string(text))
		}
		if len(list) > most || len(text) > longestText {
			return false
		}
		for _, e := range p.Edges(t) {
			if int(e.Hi-e.Lo) > most {
				return false
			}
			for r := e.Lo; r <= e.Hi; r++ {
				text = append(text, r)
				ok := visit(e.To)
				if text = text[:len(text)-1]; !ok {
					return false
				}
			}
		}
		return true
	}
	if !visit(t) {
		return nil, false
	}
	return list, true
}
