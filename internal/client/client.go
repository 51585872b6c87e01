package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"
)

// patience bounds a request that is no stream.
const patience = 60 * time.Second

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

// Client asks one server. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	http  *http.Client
	agent string
}

// New makes a client of the server. It contacts nobody.
func New(s Server, agent string) (*Client, error) {
	base, err := url.Parse(s.URL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("server %q: want an address such as https://heliograph.example:9405", s.URL)
	}
	if base.User != nil {
		return nil, errors.New("the server's address holds a login; put a token into a file or HELIOGRAPH_TOKEN instead")
	}
	token, err := s.readToken()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if s.CAFile != "" {
		pem, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("CA file: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s: no certificate in it", s.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Client{base: base, token: token, agent: agent, http: &http.Client{
		Transport: transport,
		// A server of ours redirects nowhere; the token is not for another.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Exposed says whether a token travels where others may read it.
func (c *Client) Exposed() bool {
	host := c.base.Hostname()
	ip := net.ParseIP(host)
	return c.token != "" && c.base.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Request is one call.
type Request struct {
	Method string // empty: GET
	// Path is below the server's address; its segments are already escaped where they are
	// names: see [Segment].
	Path  string
	Query url.Values
	Body  any // sent as JSON; nil: none
}

// Segment escapes a name for a path.
func Segment(name string) string { return url.PathEscape(name) }

// Do calls and reads the answer into out, which may be nil. It returns the answer's ETag.
func (c *Client) Do(ctx context.Context, r Request, out any) (etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	res, err := c.send(ctx, r, "application/json")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return "", c.unreachable(err)
	}
	if out != nil && len(data) > 0 {
		if err := json.Unmarshal(data, out); err != nil {
			return "", &UnreachableError{Server: c.base.Host, cause: fmt.Errorf("%s %s: the answer is not heliograph's: %w", r.method(), r.Path, err)}
		}
	}
	return res.Header.Get("ETag"), nil
}

func (r Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// send returns an answer that is a success; the caller closes its body.
func (c *Client) send(ctx context.Context, r Request, accept string) (*http.Response, error) {
	var body io.Reader
	if r.Body != nil {
		data, err := json.Marshal(r.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	u := *c.base
	u.RawPath = path.Join(u.EscapedPath(), "/", r.Path)
	if !strings.HasPrefix(u.RawPath, "/") {
		u.RawPath = "/" + u.RawPath
	}
	unescaped, err := url.PathUnescape(u.RawPath)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawQuery = unescaped, r.Query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method(), u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept+", application/problem+json")
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer res.Body.Close()
		return nil, c.problem(res, r)
	}
	return res, nil
}

// UnreachableError says that nobody answered who is a heliograph server.
type UnreachableError struct {
	Server string
	cause  error
}

// Error names the server and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("server %s: %v", e.Server, e.cause)
}

// Unwrap is the cause.
func (e *UnreachableError) Unwrap() error { return e.cause }

func (c *Client) unreachable(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // its text repeats method and address
	}
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		err = errors.New("no answer in time")
	}
	return &UnreachableError{Server: c.base.Host, cause: err}
}
