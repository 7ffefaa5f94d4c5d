// Package hub serves model files in tests as Hugging Face and Ollama's registry do: with redirects to another host
// whose signatures expire, ranges, sizes and sums, gated repositories, and, as a test asks for, with all that goes
// wrong on the way.
package hub

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Commit is what branch main of every repository is at.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// Page is how many files an answer lists; further ones are behind a link.
const Page = 3

// Server is a hub with its CDN, and a registry. Fields are set before the first request.
type Server struct {
	URL   string                       // of hub and registry
	Files map[string]map[string][]byte // by ORG/REPO, by path
	Tags  map[string][]byte            // by NAMESPACE/NAME:TAG
	Token string                       // that gated repositories want
	Gated map[string]bool
	// NoAccess: the token's account may not read gated repositories.
	NoAccess bool
	// CDN changes what the CDN does with a request, the nth for a file from 0; it returns false if it has answered.
	CDN func(w http.ResponseWriter, r *http.Request, n int) bool
	// Busy is how many requests of the API get 429, each with Retry-After: 1.
	Busy int

	mu        sync.Mutex
	hub, cdn  *httptest.Server
	requests  map[string]int // of the CDN, by path
	signed    int
	expires   map[string]time.Time // by signature
	used      map[string]int
	Leaked    []string // tokens that reached the CDN
	MaxUses   int      // of a signature; 0: until it expires
	ranges    []string
	blobNames map[string][]byte // by sum
	sums      map[string][2]string
}

// Start begins to serve.
func (s *Server) Start() {
	s.requests, s.expires, s.used, s.blobNames = map[string]int{}, map[string]time.Time{}, map[string]int{}, map[string][]byte{}
	s.sums = map[string][2]string{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/models/{org}/{repo}", s.info)
	mux.HandleFunc("GET /api/models/{org}/{repo}/revision/{rev}", s.info)
	mux.HandleFunc("GET /api/models/{org}/{repo}/refs", s.refs)
	mux.HandleFunc("GET /api/models/{org}/{repo}/tree/{rev}", s.tree)
	mux.HandleFunc("POST /api/models/{org}/{repo}/paths-info/{rev}", s.pathsInfo)
	mux.HandleFunc("GET /v2/{space}/{name}/manifests/{tag}", s.manifest)
	mux.HandleFunc("GET /v2/{space}/{name}/blobs/{digest}", s.blob)
	files := http.NewServeMux()
	files.HandleFunc("GET /{org}/{repo}/resolve/{rev}/{file...}", s.resolve)
	mux.Handle("/", files)
	s.cdn = httptest.NewServer(http.HandlerFunc(s.serveCDN))
	s.hub = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		busy := s.Busy > 0
		if busy {
			s.Busy--
		}
		s.mu.Unlock()
		if busy {
			w.Header().Set("Retry-After", "1")
			http.Error(w, `{"error":"Too Many Requests"}`, http.StatusTooManyRequests)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	s.URL = s.hub.URL
}

// Close ends the server.
func (s *Server) Close() {
	s.hub.CloseClientConnections()
	s.cdn.CloseClientConnections()
	s.hub.Close()
	s.cdn.Close()
}

// Requests is how often the CDN was asked for anything, and with what ranges.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ranges)
}

// SHA256 is the sum of b in hex.
func SHA256(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// sumsOf are the sums of a file: SHA-256 and git's. They are computed once.
func (s *Server) sumsOf(b []byte) (sha, git string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprintf("%p %d", b, len(b))
	sums, ok := s.sums[key]
	if !ok {
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", len(b))
		h.Write(b)
		sums = [2]string{SHA256(b), hex.EncodeToString(h.Sum(nil))}
		s.sums[key] = sums
	}
	return sums[0], sums[1]
}

func (s *Server) sha256(b []byte) string { sha, _ := s.sumsOf(b); return sha }
func (s *Server) git(b []byte) string    { _, git := s.sumsOf(b); return git }

// isLFS says whether a file lies in the CDN.
func isLFS(name string) bool {
	return strings.HasSuffix(name, ".gguf") && !strings.HasPrefix(name, "plain/")
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", message)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

// repo returns the files of the repository that r is about; false if it has answered. Only the files of a gated one are
// closed, not what is told of them.
func (s *Server) repo(w http.ResponseWriter, r *http.Request, contents bool) (string, map[string][]byte, bool) {
	name := r.PathValue("org") + "/" + r.PathValue("repo")
	files, ok := s.Files[name]
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	rev := r.PathValue("rev")
	switch {
	case given != "" && given != s.Token:
		w.WriteHeader(http.StatusUnauthorized)
		reply(w, map[string]string{"error": "Invalid credentials in Authorization header"})
	case !ok && given == "":
		refuse(w, http.StatusUnauthorized, "RepoNotFound", "Invalid username or password.")
	case !ok:
		refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	case rev != "" && rev != "main" && rev != Commit:
		refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+rev)
	case contents && s.Gated[name] && given == "":
		refuse(w, http.StatusUnauthorized, "GatedRepo", "Access to model "+name+" is restricted. You must be authenticated to access it.")
	case contents && s.Gated[name] && s.NoAccess:
		refuse(w, http.StatusForbidden, "GatedRepo", "Access to model "+name+" is restricted and you are not in the authorized list.")
	default:
		return name, files, true
	}
	return "", nil, false
}

type lfs struct {
	OID         string `json:"oid,omitempty"`
	SHA256      string `json:"sha256,omitempty"`
	Size        int    `json:"size"`
	PointerSize int    `json:"pointerSize"`
}

func (s *Server) info(w http.ResponseWriter, r *http.Request) {
	name, files, ok := s.repo(w, r, false)
	if !ok {
		return
	}
	type sibling struct {
		Name string `json:"rfilename"`
		Size int    `json:"size,omitempty"`
		Blob string `json:"blobId,omitempty"`
		LFS  *lfs   `json:"lfs,omitempty"`
	}
	var all []sibling
	for _, f := range sorted(files) {
		e := sibling{Name: f}
		if r.URL.Query().Get("blobs") == "true" {
			e.Size, e.Blob = len(files[f]), s.git(files[f])
			if isLFS(f) {
				e.LFS = &lfs{SHA256: s.sha256(files[f]), Size: len(files[f]), PointerSize: 134}
			}
		}
		all = append(all, e)
	}
	reply(w, map[string]any{"_id": "0", "id": name, "modelId": name, "sha": Commit, "private": false, "gated": s.Gated[name], "siblings": all})
}

func (s *Server) refs(w http.ResponseWriter, r *http.Request) {
	if _, _, ok := s.repo(w, r, false); ok {
		reply(w, map[string]any{"tags": []any{}, "converts": []any{}, "branches": []any{map[string]string{"name": "main", "ref": "refs/heads/main", "targetCommit": Commit}}})
	}
}

type entry struct {
	Type string `json:"type"`
	OID  string `json:"oid"`
	Size int    `json:"size"`
	Path string `json:"path"`
	LFS  *lfs   `json:"lfs,omitempty"`
	Last any    `json:"lastCommit,omitempty"`
}

func (s *Server) entryOf(path string, b []byte) entry {
	e := entry{Type: "file", OID: s.git(b), Size: len(b), Path: path}
	if isLFS(path) {
		e.LFS = &lfs{OID: s.sha256(b), Size: len(b), PointerSize: 134}
	}
	return e
}

// tree lists the files of a repository, some at a time.
func (s *Server) tree(w http.ResponseWriter, r *http.Request) {
	_, files, ok := s.repo(w, r, false)
	if !ok {
		return
	}
	all := []entry{}
	for _, f := range sorted(files) {
		if r.URL.Query().Get("recursive") == "true" || !strings.Contains(f, "/") {
			all = append(all, s.entryOf(f, files[f]))
		}
	}
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit > 0 {
		from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
		all = all[min(from, len(all)):]
		if n := min(limit, Page); len(all) > n {
			all = all[:n]
			q := r.URL.Query()
			q.Set("cursor", strconv.Itoa(from+n))
			w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.URL, r.URL.Path, q.Encode()))
		}
	}
	reply(w, all)
}

func (s *Server) pathsInfo(w http.ResponseWriter, r *http.Request) {
	_, files, ok := s.repo(w, r, false)
	if !ok {
		return
	}
	var body struct {
		Paths  []string
		Expand bool
	}
	if json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, "BadRequest", "paths")
		return
	}
	all := []entry{}
	for _, p := range body.Paths {
		if b, ok := files[p]; ok {
			e := s.entryOf(p, b)
			if body.Expand {
				e.Last = map[string]string{"id": Commit, "title": "first", "date": "2026-01-01T00:00:00.000Z"}
			}
			all = append(all, e)
		}
	}
	reply(w, all)
}

// resolve answers for a small file, and sends elsewhere for a large one.
func (s *Server) resolve(w http.ResponseWriter, r *http.Request) {
	_, files, ok := s.repo(w, r, true)
	if !ok {
		return
	}
	path := r.PathValue("file")
	b, ok := files[path]
	if !ok {
		refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
		return
	}
	h := w.Header()
	h.Set("X-Repo-Commit", Commit)
	h.Set("Accept-Ranges", "bytes")
	if !isLFS(path) {
		h.Set("ETag", `"`+s.git(b)+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
		return
	}
	h.Set("X-Linked-Size", strconv.Itoa(len(b)))
	h.Set("X-Linked-Etag", `"`+s.sha256(b)+`"`)
	s.elsewhere(w, r, b)
}

// elsewhere redirects to the CDN, with a signature.
func (s *Server) elsewhere(w http.ResponseWriter, r *http.Request, b []byte) {
	sum := s.sha256(b)
	s.mu.Lock()
	s.signed++
	signature := fmt.Sprintf("sig%d", s.signed)
	s.expires[signature] = time.Now().Add(time.Minute)
	s.blobNames[sum] = b
	s.mu.Unlock()
	http.Redirect(w, r, s.cdn.URL+"/"+sum+"?Expires=60&Signature="+signature, http.StatusFound)
}

func (s *Server) serveCDN(w http.ResponseWriter, r *http.Request) {
	signature := r.URL.Query().Get("Signature")
	s.mu.Lock()
	b, ok := s.blobNames[strings.TrimPrefix(r.URL.Path, "/")]
	n := s.requests[r.URL.Path]
	s.requests[r.URL.Path]++
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	s.used[signature]++
	expired := time.Now().After(s.expires[signature]) || s.MaxUses > 0 && s.used[signature] > s.MaxUses
	if a := r.Header.Get("Authorization"); a != "" {
		s.Leaked = append(s.Leaked, a)
	}
	s.mu.Unlock()
	switch {
	case !ok || expired:
		http.Error(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>", http.StatusForbidden)
	case s.CDN == nil || s.CDN(w, r, n):
		w.Header().Set("ETag", `"`+s.sha256(b)[:32]+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}

func (s *Server) manifest(w http.ResponseWriter, r *http.Request) {
	b, ok := s.Tags[r.PathValue("space")+"/"+r.PathValue("name")+":"+r.PathValue("tag")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		reply(w, map[string]any{"errors": []any{map[string]string{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}}})
		return
	}
	layer := func(kind string, b []byte) map[string]any {
		return map[string]any{"mediaType": "application/vnd.ollama.image." + kind, "digest": "sha256:" + SHA256(b), "size": len(b)}
	}
	w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "digest": "sha256:" + SHA256([]byte("{}")), "size": 2},
		"layers": []any{layer("model", b), layer("template", []byte("{{ .Prompt }}")), layer("license", []byte("free"))},
	})
}

func (s *Server) blob(w http.ResponseWriter, r *http.Request) {
	for name, b := range s.Tags {
		if strings.HasPrefix(name, r.PathValue("space")+"/"+r.PathValue("name")+":") && r.PathValue("digest") == "sha256:"+s.sha256(b) {
			s.elsewhere(w, r, b)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

func sorted(files map[string][]byte) []string {
	var all []string
	for f := range files {
		all = append(all, f)
	}
	slices.Sort(all)
	return all
}
