package api

import (
	"fmt"
	"strings"
)

// content is a text, or parts of text, which lines part.
type content string

// A contentPart is a part of a content, in any of the APIs.
type contentPart struct {
	Type    string  `json:"type"`
	Text    *string `json:"text"`
	Refusal *string `json:"refusal"`
}

// textParts are the types of parts that hold text.
var textParts = map[string]bool{"text": true, "input_text": true, "output_text": true, "reasoning_text": true, "summary_text": true, "refusal": true}

// media are the types of parts that models of text cannot take, and what they hold.
var media = map[string]string{
	"image_url": "images", "input_image": "images", "image": "images", "computer_screenshot": "images",
	"input_audio": "audio", "audio": "audio", "video": "videos", "video_url": "videos", "input_video": "videos",
	"file": "files", "input_file": "files", "document": "files", "container_upload": "files",
}

// notText is the error for a part that is no text.
func notText(at, kind string) error {
	if what, ok := media[kind]; ok {
		return unsupported(at+".type", "%s.type: %s are not supported by this model (%q): it takes text only", at, what, kind)
	}
	return unsupported(at+".type", "%s.type: only text is supported, not %q", at, kind)
}

func (c *content) decode(d *decoder, raw []byte, path string) error {
	if raw[0] == '"' {
		*c = content(unquote(raw))
		return nil
	}
	if raw[0] != '[' {
		return wrongType(path, "a string or an array of parts", raw)
	}
	var parts []contentPart
	if err := d.into(raw, &parts, path); err != nil {
		return err
	}
	var texts []string
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !textParts[p.Type] {
			return notText(at, p.Type)
		}
		field, text := "text", p.Text
		if p.Type == "refusal" {
			field, text = "refusal", p.Refusal
		}
		if text == nil {
			return badParam(at+"."+field, "%s.%s is missing", at, field)
		}
		texts = append(texts, *text)
	}
	*c = content(strings.Join(texts, "\n"))
	return nil
}
