package library

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Kind says by what protocol a model is fetched.
type Kind int

const (
	HuggingFace Kind = iota // a repository of a hub that speaks Hugging Face's protocol
	Registry                // a name of a registry that speaks Ollama's
	Web                     // a file at a URL
)

// Ref names a model that can be fetched.
type Ref struct {
	Kind Kind
	Repo string // ORG/REPO, or NAMESPACE/NAME of a registry
	Tag  string // the quantization, or a registry's tag; "": the default
	File string // of a hub: this file of the repository, in place of a tag
	URL  string // of Web
}

// hubs are the hosts whose addresses name repositories of Hugging Face; registries those of Ollama's library.
var (
	hubs       = []string{"hf.co", "huggingface.co", "www.huggingface.co"}
	registries = []string{"ollama.com", "registry.ollama.ai", "www.ollama.com"}
)

// word is a part of a name: what both services allow, and nothing that means something to a file system.
var word = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}$`)

// ParseRef reads hf.co/ORG/REPO[:QUANT], hf.co/ORG/REPO/FILE.gguf, [ollama.com/][NAMESPACE/]NAME[:TAG], or the URL of a
// page or a file. A name of one part is a registry's. One of two parts without a host is refused: both services have
// such names.
func ParseRef(s string) (Ref, error) {
	rest := s
	web := false
	for _, scheme := range []string{"https://", "http://"} {
		if r, ok := strings.CutPrefix(rest, scheme); ok {
			rest, web = r, true
		}
	}
	host, tail, _ := strings.Cut(rest, "/")
	switch {
	case contains(hubs, host):
		return parseHub(s, tail)
	case contains(registries, host):
		return parseRegistry(s, strings.TrimPrefix(tail, "library/"))
	case web:
		return parseURL(s)
	case strings.Count(rest, "/") == 1 && !strings.Contains(host, "."):
		return Ref{}, fmt.Errorf("%s: say hf.co/%s or ollama.com/%s", s, s, s)
	}
	return parseRegistry(s, rest)
}

func contains(all []string, s string) bool {
	for _, a := range all {
		if strings.EqualFold(a, s) {
			return true
		}
	}
	return false
}

func parseHub(s, tail string) (Ref, error) {
	r := Ref{Kind: HuggingFace}
	tail, _, _ = strings.Cut(tail, "?")
	parts := strings.Split(strings.TrimSuffix(tail, "/"), "/")
	if len(parts) < 2 {
		return r, fmt.Errorf("%s: want hf.co/ORG/REPO, with :QUANT if need be", s)
	}
	if len(parts) > 4 && (parts[2] == "blob" || parts[2] == "resolve") && parts[3] == "main" { // an address of the site
		parts = append(parts[:2:2], parts[4:]...)
	} else if len(parts) == 4 && parts[2] == "tree" && parts[3] == "main" {
		parts = parts[:2]
	}
	if len(parts) == 2 {
		parts[1], r.Tag, _ = strings.Cut(parts[1], ":")
	} else {
		r.File = strings.Join(parts[2:], "/")
		if !IsLocalName(r.File) || !strings.HasSuffix(strings.ToLower(r.File), ".gguf") {
			return r, fmt.Errorf("%s: %q is no name of a GGUF file", s, r.File)
		}
	}
	r.Repo = parts[0] + "/" + parts[1]
	if !word.MatchString(parts[0]) || !word.MatchString(parts[1]) || r.Tag != "" && !word.MatchString(r.Tag) {
		return r, fmt.Errorf("%s: want hf.co/ORG/REPO, with :QUANT if need be", s)
	}
	return r, nil
}

func parseRegistry(s, rest string) (Ref, error) {
	name, tag, tagged := strings.Cut(rest, ":")
	parts := strings.Split(name, "/")
	if len(parts) == 1 {
		parts = []string{"library", parts[0]}
	}
	if !tagged {
		tag = "latest"
	}
	if len(parts) != 2 || !word.MatchString(parts[0]) || !word.MatchString(parts[1]) || !word.MatchString(tag) {
		return Ref{}, fmt.Errorf("%s: want hf.co/ORG/REPO[:QUANT], NAME[:TAG] of Ollama's library, or the URL of a GGUF file", s)
	}
	return Ref{Kind: Registry, Repo: parts[0] + "/" + parts[1], Tag: tag}, nil
}

func parseURL(s string) (Ref, error) {
	u, err := url.Parse(s)
	if err != nil {
		return Ref{}, fmt.Errorf("%s: it is no URL", s)
	}
	name := strings.TrimPrefix(path.Clean("/"+u.Path), "/")
	switch {
	case u.User != nil:
		return Ref{}, fmt.Errorf("%s: a URL with a user's name is not taken", u.Redacted())
	case !Safe(u):
		return Ref{}, fmt.Errorf("%s: say https://, or nobody knows what arrives", s)
	case !IsLocalName(name) || !strings.HasSuffix(strings.ToLower(name), ".gguf"):
		return Ref{}, fmt.Errorf("%s: the name does not end in .gguf", s)
	}
	u.Fragment = ""
	return Ref{Kind: Web, URL: u.String()}, nil
}

// Safe says whether nobody on the way to u can change what arrives: HTTPS, or this computer.
func Safe(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// String is what people call the model; ParseRef reads it.
func (r Ref) String() string {
	switch r.Kind {
	case HuggingFace:
		s := "hf.co/" + r.Repo
		if r.File != "" {
			s += "/" + r.File
		}
		if r.Tag != "" {
			s += ":" + r.Tag
		}
		return s
	case Registry:
		if name, ok := strings.CutPrefix(r.Repo, "library/"); ok {
			return name + ":" + r.Tag
		}
		return "ollama.com/" + r.Repo + ":" + r.Tag
	}
	return r.URL
}

// The folders of a models folder, one for each kind.
const (
	hubFolder      = "hf.co"
	registryFolder = "ollama"
	webFolder      = "web"
)

// Place is where in a models folder a file of the model lies. file is its name in a hub's repository, and not read
// otherwise. It fails if a name would lead elsewhere.
func (r Ref) Place(file string) (string, error) {
	var p string
	switch r.Kind {
	case HuggingFace:
		p = path.Join(hubFolder, r.Repo, file)
		if !IsLocalName(file) {
			return "", fmt.Errorf("%s: %q is no name for a file here", r, file)
		}
	case Registry:
		p = path.Join(registryFolder, r.Repo, r.Tag+".gguf")
	case Web:
		u, err := url.Parse(r.URL)
		if err != nil {
			return "", err
		}
		p = path.Join(webFolder, strings.NewReplacer(":", "_", "[", "", "]", "").Replace(u.Host), path.Clean("/"+u.Path))
	}
	if !IsLocalName(p) {
		return "", fmt.Errorf("%s: %q is no name for a file here", r, p)
	}
	return filepath.FromSlash(p), nil
}

// IsLocalName says whether a path with slashes is one below a folder: without hidden parts, and without what some file
// system takes for more than a name.
func IsLocalName(p string) bool {
	if len(p) > 1024 || !filepath.IsLocal(filepath.FromSlash(p)) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part[0] == '.' || len(part) > 200 || strings.ContainsAny(part, `\:*?"<>|`) {
			return false
		}
		for _, c := range part {
			if c < ' ' || c == 0x7f || c == 0xfffd {
				return false
			}
		}
	}
	return true
}
