package chat

import "github.com/zincc-dev/zincc/runtime/text"

// ShowsControl says whether what the model writes beside text is marked by control
// tokens, so that their text must be seen.
func (d Dialect) ShowsControl(tok *text.Tokenizer) bool {
	for _, marker := range d.Markers() {
		if id, ok := tok.ID(marker); ok && tok.Piece(id, false) == "" {
			return true
		}
	}
	return false
}

// EndTokens returns the tokens that end an answer by the template, where the
// vocabulary does not say that they end generation.
func (d Dialect) EndTokens(tok *text.Tokenizer) []int32 {
	var ids []int32
	for _, end := range d.Ends {
		if id, ok := tok.ID(end); ok && !tok.IsEOG(id) {
			ids = append(ids, id)
		}
	}
	return ids
}
