package schema

import (
	"embed"
	"fmt"
	"strings"
)

// metas are the schemas of schemas of drafts 4, 6 and 7, without their remarks. Those of later drafts need $dynamicRef.
//
//go:embed meta/*.json
var metas embed.FS

// known enters the schema of schemas that a URI names, nil if it names none.
func (d *document) known(uri string) (*value, error) {
	rest, begins := strings.CutPrefix(uri, "http://json-schema.org/draft-0")
	name, ends := strings.CutSuffix(rest, "/schema")
	if !begins || !ends || len(name) != 1 {
		return nil, nil
	}
	text, err := metas.ReadFile(fmt.Sprintf("meta/draft-0%s.json", name))
	if err != nil {
		return nil, nil
	}
	v, err := parse(text)
	if err == nil {
		err = d.enter(v, uri, "", draft7, nil)
	}
	return v, err
}
