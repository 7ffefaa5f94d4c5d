package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/runtime/library"
)

// maxFile is the largest file that is believed.
const maxFile = 4 << 40

var (
	commit    = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)
	sha1Hex   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// fromHub lists a model's files: https://huggingface.co/docs/hub/api, with sizes and sums of the commit that main is
// at.
func (c *Client) fromHub(ctx context.Context, ref library.Ref) ([]item, error) {
	var repo struct {
		SHA      string
		Siblings []struct {
			Name string `json:"rfilename"`
			Size int64
			Blob string `json:"blobId"` // git's sum
			LFS  *struct {
				SHA256 string
				Size   int64
			}
		}
	}
	if err := c.ask(ctx, c.Hub+"/api/models/"+ref.Repo+"/revision/main?blobs=true", "application/json", &repo); err != nil {
		return nil, c.hubError(ref, err)
	}
	if !commit.MatchString(repo.SHA) {
		return nil, fmt.Errorf("the hub names no commit")
	}
	var files []string
	at := map[string]int{}
	for i, f := range repo.Siblings {
		if !library.IsLocalName(f.Name) || !strings.HasSuffix(strings.ToLower(f.Name), ".gguf") {
			continue
		}
		if library.OtherUse(f.Name) == "" {
			files = append(files, f.Name)
		}
		at[f.Name] = i
	}
	g, err := choose(ref, files)
	if err != nil {
		return nil, err
	}
	for _, f := range repo.Siblings {
		if _, local := at[f.Name]; local && strings.Contains(library.OtherUse(f.Name), "images") {
			c.Said(fmt.Sprintf("left out: %s, for %s", f.Name, library.OtherUse(f.Name)))
		}
	}
	var items []item
	for _, name := range g.Files {
		f := repo.Siblings[at[name]]
		it := item{ref: ref, name: path.Base(name), size: f.Size}
		switch {
		case f.LFS != nil && sha256Hex.MatchString(f.LFS.SHA256):
			it.size, it.sum = f.LFS.Size, sum{"sha256", f.LFS.SHA256}
		case f.LFS == nil && sha1Hex.MatchString(f.Blob):
			it.sum = sum{"git", f.Blob}
		default:
			return nil, fmt.Errorf("the hub has no sum of %s", name)
		}
		if it.place, err = ref.Place(name); err != nil {
			return nil, err
		}
		it.url = c.Hub + "/" + ref.Repo + "/resolve/" + repo.SHA + "/" + (&url.URL{Path: name}).EscapedPath()
		if err := it.believable(); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	return items, nil
}

// choose returns the model that ref means among a repository's files.
func choose(ref library.Ref, files []string) (library.Group, error) {
	groups := library.Groups(files)
	var g library.Group
	var err error
	if ref.File == "" {
		g, err = library.Choose(groups, ref.Tag)
	} else if i := slices.IndexFunc(groups, func(g library.Group) bool { return slices.Contains(g.Files, ref.File) }); i >= 0 {
		g = groups[i]
	} else {
		return g, fmt.Errorf("the repository has no such file")
	}
	if err == nil && g.Missing != "" {
		err = fmt.Errorf("the repository lacks a part of the model: %s", path.Base(g.Missing))
	}
	return g, err
}

func (it *item) believable() error {
	if it.size <= 0 || it.size > maxFile {
		return fmt.Errorf("%s has %d bytes, the server says", it.name, it.size)
	}
	return nil
}

// hubError says what an answer of a hub means, and what to do.
func (c *Client) hubError(ref library.Ref, err error) error {
	var s *statusError
	if !errors.As(err, &s) || s.moved {
		return err
	}
	page := c.Hub + "/" + ref.Repo
	gated := s.hint == "GatedRepo"
	switch {
	case s.code == 401 && c.Token != "" && s.hint == "":
		return fmt.Errorf("the hub does not know the token in HF_TOKEN (401)")
	case s.code == 401 && gated:
		return fmt.Errorf("the repository is gated (401): ask for access at %s, then set HF_TOKEN to a token of that account", page)
	case s.code == 401 && c.Token == "":
		return fmt.Errorf("there is no such repository, or it is private (401): for a private one set HF_TOKEN")
	case s.code == 401, s.code == 404 && s.hint == "RepoNotFound":
		return fmt.Errorf("there is no such repository that HF_TOKEN may see (%d)", s.code)
	case s.code == 403 && gated && c.Token == "":
		return fmt.Errorf("the repository is gated (403): ask for access at %s, then set HF_TOKEN to a token of that account", page)
	case s.code == 403 && gated:
		return fmt.Errorf("the repository is gated, and the account of HF_TOKEN has no access yet (403): ask for it at %s", page)
	case s.code == 403:
		return fmt.Errorf("the hub forbids it (403): HF_TOKEN needs the right to read this repository")
	case s.code == 404:
		return fmt.Errorf("there is no such repository or branch (404)")
	case s.code == 429 && c.Token == "":
		return fmt.Errorf("%w: with HF_TOKEN the hub allows more", err)
	}
	return err
}

// fromRegistry reads the manifest of a tag. A model is one layer; templates, parameters and licenses of Ollama are left
// out: the model's file has its own.
func (c *Client) fromRegistry(ctx context.Context, ref library.Ref) ([]item, error) {
	var m library.Manifest
	base := c.Registry + "/v2/" + ref.Repo
	err := c.ask(ctx, base+"/manifests/"+ref.Tag, "application/vnd.docker.distribution.manifest.v2+json", &m)
	var s *statusError
	if errors.As(err, &s) && !s.moved {
		switch s.code {
		case 401, 403:
			return nil, fmt.Errorf("the registry wants a login (%d), which zincrun has not", s.code)
		case 404:
			return nil, fmt.Errorf("the registry has no model of this name and tag (404)")
		}
	}
	if err != nil {
		return nil, err
	}
	var model *library.Layer
	for i, l := range m.Layers {
		switch l.MediaType {
		case library.ModelLayer:
			if model != nil {
				return nil, fmt.Errorf("the model has several files: %w", errors.ErrUnsupported)
			}
			model = &m.Layers[i]
		case library.AdapterLayer:
			return nil, fmt.Errorf("the model has an adapter, which zincrun does not apply: %w", errors.ErrUnsupported)
		case library.ProjectorLayer:
			c.Said("left out: the projector, for images and audio, which zincrun does not read")
		}
	}
	if model == nil || model.Sum() == "" {
		return nil, fmt.Errorf("the model is no GGUF file: %w", errors.ErrUnsupported)
	}
	it := item{ref: ref, url: base + "/blobs/" + model.Digest, size: model.Size, sum: sum{"sha256", model.Sum()}, name: ref.String()}
	if it.place, err = ref.Place(""); err != nil {
		return nil, err
	}
	return []item{it}, it.believable()
}

// fromURL asks for a file's size. Of one part of a split model it takes all.
func (c *Client) fromURL(ctx context.Context, ref library.Ref) ([]item, error) {
	urls := []string{ref.URL}
	u, err := url.Parse(ref.URL)
	if err != nil {
		return nil, err
	}
	if stem, _, of, split := library.Part(u.Path); split {
		urls = nil
		for i := range of {
			part := *u
			part.Path, part.RawPath = library.PartOf(stem, i+1, of), ""
			urls = append(urls, part.String())
		}
	}
	var items []item
	for _, address := range urls {
		it := item{ref: ref, url: address}
		if u, err = url.Parse(address); err != nil {
			return nil, err
		}
		it.name = path.Base(u.Path)
		if it.place, err = (library.Ref{Kind: library.Web, URL: address}).Place(""); err != nil {
			return nil, err
		}
		err := c.again(ctx, func() (bool, error) { return false, c.probe(ctx, &it) })
		var s *statusError
		if errors.As(err, &s) && (s.code == 401 || s.code == 403) {
			return nil, fmt.Errorf("%s: %w: it wants a login, which zincrun has for hf.co alone (HF_TOKEN)", it.name, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", it.name, err)
		}
		items = append(items, it)
	}
	return items, nil
}

// probe asks for a file's first byte, and learns its size, its ETag and, of a hub, its sum.
func (c *Client) probe(ctx context.Context, it *item) error {
	ctx, cancel := context.WithTimeout(ctx, c.stall)
	defer cancel()
	a, err := c.get(ctx, it.url, http.Header{"Range": {"bytes=0-0"}})
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if err := a.status(http.StatusOK, http.StatusPartialContent); err != nil {
		return err
	}
	it.size = a.ContentLength
	if a.StatusCode == http.StatusPartialContent {
		if _, _, it.size, err = contentRange(a.Header.Get("Content-Range")); err != nil {
			return err
		}
	}
	it.etag = validator(a.Header)
	return it.believable()
}

// validator tells apart the versions of a file at a URL: its ETag, else when it was changed; "" if the server says
// neither.
func validator(h http.Header) string {
	if etag := h.Get("ETag"); etag != "" && !strings.HasPrefix(etag, "W/") {
		return etag
	}
	return h.Get("Last-Modified")
}
