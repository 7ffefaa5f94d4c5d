// Package library finds model files on this computer by name: those of the models folder, into which package pull
// fetches, and, to be read only, those in the caches of Hugging Face's programs, Ollama and LM Studio. Names come from
// where files lie; nothing but the folders is read to list them.
package library

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/outfile"
)

// Model is a model file, or all files of a split one.
type Model struct {
	Name     string    `json:"name"`            // hf.co/ORG/REPO:QUANT, NAME:TAG, or what the file is called
	Path     string    `json:"path"`            // of the first file
	Files    []string  `json:"files,omitempty"` // of a split model: all
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	Where    string    `json:"where"` // Models, or whose cache it lies in
	Digest   string    `json:"sha256,omitempty"`
	// Problem says why it cannot be used: a part is missing, or it is not all there yet.
	Problem string `json:"problem,omitempty"`

	Stem string `json:"-"` // what the file is called, without .gguf or a part's number
}

// Models is what Where says of the models folder.
const Models = "models"

// Unfinished is the Problem of a model that was not fetched to its end.
const Unfinished = "unfinished: pull it again to go on"

// Library is the models folder, and what lies elsewhere.
type Library struct{ Dir string }

// Open returns the library of the models folder dir; of an empty name that of ZINCRUN_MODELS, else zincc/models where
// programs keep the user's data (XDG_DATA_HOME). The folder need not be there.
func Open(dir string) (*Library, error) {
	if dir == "" {
		dir = os.Getenv("ZINCRUN_MODELS")
	}
	if dir == "" {
		data, err := dataDir()
		if err != nil {
			return nil, fmt.Errorf("no models folder: set ZINCRUN_MODELS, or HOME")
		}
		dir = filepath.Join(data, "zincc", "models")
	}
	dir, err := filepath.Abs(dir)
	return &Library{dir}, err
}

func dataDir() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return os.UserConfigDir() // programs keep their data there, too
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share"), err
}

// List returns all models by name. Of one name, that of the models folder comes first, and others are left out. Folders
// that cannot be read have none.
func (l *Library) List() []Model {
	all := Folder(l.Dir)
	for _, c := range caches {
		for _, root := range c.roots() {
			for _, m := range c.find(root) {
				m.Where = c.name
				all = append(all, m)
			}
		}
	}
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(m Model) bool {
		k := strings.ToLower(m.Name)
		if seen[k] {
			return true
		}
		seen[k] = true
		return false
	})
	slices.SortStableFunc(all, func(a, b Model) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Path, b.Path))
	})
	return all
}

// Folder returns the models below a folder, and its plans (*.bin), under the names of their files; what was fetched has
// the name under which it was. Of two of a name the second is called by its place in the folder.
func Folder(dir string) []Model {
	all := scan(dir, ownName, ".bin")
	taken := map[string]bool{}
	for i := range all {
		m := &all[i]
		m.Where = Models
		if r, ok := ReadRecord(m.Path); ok {
			m.Digest = r.SHA256
		}
		if taken[strings.ToLower(m.Name)] {
			rel, _ := filepath.Rel(dir, m.Path)
			if m.Name = filepath.ToSlash(rel); !strings.HasPrefix(m.Name, hubFolder+"/") {
				m.Name = strings.TrimSuffix(m.Name, path.Ext(m.Name))
			}
		}
		taken[strings.ToLower(m.Name)] = true
	}
	return all
}

// ownName is the name of a model in the models folder: rel is its stem there.
func ownName(rel, quant string) string {
	parts := strings.Split(rel, "/")
	last := parts[len(parts)-1]
	switch {
	case parts[0] == hubFolder && len(parts) > 3:
		return hubName(parts[1]+"/"+parts[2], strings.Join(parts[3:], "/"), quant)
	case parts[0] == registryFolder && len(parts) == 4:
		return Ref{Kind: Registry, Repo: parts[1] + "/" + parts[2], Tag: last}.String()
	}
	return last
}

func hubName(repo, stem, quant string) string {
	if quant == "" {
		return "hf.co/" + repo + "/" + stem + ".gguf"
	}
	return "hf.co/" + repo + ":" + quant
}

// Find returns the model that a name means: its whole name, or the end of it, such as REPO:QUANT, REPO, NAME of
// NAME:latest, or what the file is called. It fails with a NotFoundError, or if the name means several. Upper and lower
// case do not matter.
func (l *Library) Find(name string) (Model, error) {
	want := strings.ToLower(name)
	if r, err := ParseRef(name); err == nil && r.Kind != Web {
		want = strings.ToLower(r.String())
		if strings.EqualFold(r.Tag, "latest") && !strings.Contains(name, ":") {
			want = strings.TrimSuffix(want, ":latest")
		}
	}
	var found []Model
	best := len(fits)
	for _, m := range l.List() {
		for i, fit := range fits[:min(best+1, len(fits))] {
			if !fit(m, want) {
				continue
			}
			if i < best {
				found, best = nil, i
			}
			found = append(found, m)
			break
		}
	}
	switch len(found) {
	case 0:
		return Model{}, &NotFoundError{name}
	case 1:
		return found[0], nil
	}
	for _, q := range append([]string{"latest"}, defaultQuants...) { // of one repository
		for _, m := range found {
			if strings.EqualFold(m.Name, want+":"+q) || strings.EqualFold(m.Name, "hf.co/"+want+":"+q) {
				return m, nil
			}
		}
	}
	var names []string
	for _, m := range found {
		names = append(names, m.Name)
	}
	return Model{}, fmt.Errorf("%s means several models: %s", name, strings.Join(names, ", "))
}

// fits are how a name may mean a model, the surest first; the name is in lower case.
var fits = []func(m Model, want string) bool{
	func(m Model, want string) bool { return strings.ToLower(m.Name) == want },
	func(m Model, want string) bool { return strings.ToLower(m.Name) == want+":latest" },
	func(m Model, want string) bool { return strings.HasSuffix(strings.ToLower(m.Name), "/"+want) },
	func(m Model, want string) bool { return strings.ToLower(m.Stem) == want },
	func(m Model, want string) bool {
		repo, _, tagged := strings.Cut(strings.ToLower(m.Name), ":")
		return tagged && (repo == want || strings.HasSuffix(repo, "/"+want))
	},
}

// NotFoundError says that no model has the name.
type NotFoundError struct{ Name string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no model %s here", e.Name) }

// Remove deletes a model of the models folder, all of its files and what is known of them.
func (l *Library) Remove(m Model) error {
	if m.Where != Models {
		return fmt.Errorf("%s lies in the cache of %s, which alone may remove it: %s", m.Name, m.Where, m.Path)
	}
	files := m.Files
	if len(files) == 0 {
		files = []string{m.Path}
	}
	for _, f := range files {
		for _, also := range []string{f, recordPath(f), PartPath(f), StatePath(f)} {
			if err := os.Remove(also); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		for dir := filepath.Dir(f); dir != l.Dir && strings.HasPrefix(dir, l.Dir); dir = filepath.Dir(dir) {
			if os.Remove(dir) != nil {
				break // it has other files
			}
		}
	}
	return nil
}

// Record is what is known of a file of the models folder since it was fetched.
type Record struct {
	From   string `json:"from"` // a Ref
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"` // hex
	ETag   string `json:"etag,omitempty"`   // of the server, where there is no sum
}

// PartPath is where the file lies until it is complete, and StatePath what is known of it until then.
func PartPath(file string) string  { return file + ".part" }
func StatePath(file string) string { return hidden(file, ".part.json") }

func recordPath(file string) string { return hidden(file, ".json") }

func hidden(file, suffix string) string {
	dir, name := filepath.Split(file)
	return dir + "." + name + suffix
}

// ReadRecord returns what is known of a file; false where nothing is.
func ReadRecord(file string) (Record, bool) {
	var r Record
	f, err := os.Open(recordPath(file))
	if err != nil {
		return r, false
	}
	defer f.Close()
	err = json.NewDecoder(io.LimitReader(f, 64<<10)).Decode(&r)
	return r, err == nil
}

// Write notes r of a file.
func (r Record) Write(file string) error {
	return outfile.Write(recordPath(file), func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}
