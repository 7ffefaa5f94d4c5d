package api

import (
	"encoding/json"
	"strings"
)

// ownTools are the tools of Anthropic's API that a client runs and whose schemas its models know by heart. Others are
// told them as those of functions.
var ownTools = []struct {
	kind   string // without its date
	about  string
	schema string
}{
	{"bash", "Runs a command in a shell that stays open between calls.", object(`"command": {"type": "string", "description": "The command to run."}`,
		`"restart": {"type": "boolean", "description": "true starts the shell anew, without a command."}`)},
	{"text_editor", "Shows and edits text files.", objectOf("command path", commands("view", "create", "str_replace", "insert", "undo_edit"), editing)},
	{"memory", "Keeps notes in files below /memories, from one conversation to the next.", objectOf("command", commands("view", "create", "str_replace", "insert", "delete", "rename"), editing,
		`"insert_text": {"type": "string", "description": "What insert inserts."}`, `"old_path": {"type": "string", "description": "What rename renames."}`, `"new_path": {"type": "string"}`)},
}

// editing are the parameters of the tools that edit files.
const editing = `"path": {"type": "string", "description": "The file, or a folder to view."},
"file_text": {"type": "string", "description": "The text of a file to create."},
"old_str": {"type": "string", "description": "The text to replace, which stands there once."},
"new_str": {"type": "string", "description": "What to put there, or to insert."},
"insert_line": {"type": "integer", "description": "The line behind which to insert; 0 is the beginning."},
"view_range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2, "description": "The first and the last line to view; -1 is the end."}`

func commands(names ...string) string {
	return `"command": {"type": "string", "enum": ["` + strings.Join(names, `", "`) + `"]}`
}

func object(properties ...string) string { return objectOf("", properties...) }

// objectOf is the schema of an object; required are names.
func objectOf(required string, properties ...string) string {
	s := `{"type": "object", "properties": {` + strings.Join(properties, ", ") + "}"
	if required != "" {
		s += `, "required": ["` + strings.Join(strings.Fields(required), `", "`) + `"]`
	}
	return s + "}"
}

// own adds a tool that a client runs, by its type; false: it is none.
func (s *toolset) own(kind, name string) bool {
	base, _ := service(kind)
	for _, t := range ownTools {
		if t.kind == base && name != "" {
			s.function(name, t.about, json.RawMessage(t.schema))
			return true
		}
	}
	return false
}
