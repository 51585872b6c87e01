package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sasl/oauth"
)

// OAuth is what OAuthBearerLoginModule's options and
// sasl.oauthbearer.token.endpoint.url say.
type OAuth struct {
	// TokenEndpoint is an http(s) URL that grants tokens by client credentials,
	// or a file: URL of a file that holds a token which something else renews.
	TokenEndpoint string
	ClientID      string
	ClientSecret  string
	Scope         string
	// Extensions are the SASL extensions to send with the token.
	Extensions map[string]string
	// TLS reaches an https endpoint; the zero value trusts the system's authorities.
	TLS TLSFiles
}

const (
	tokenTimeout = 10 * time.Second
	maxTokenSize = 1 << 20
	// refreshAt is the part of a token's life after which a new one is fetched,
	// as sasl.login.refresh.window.factor has it.
	refreshAt = 0.8
	// unknownTokenLife is how long a token without a stated end is kept.
	unknownTokenLife = time.Minute
)

// A tokenSource hands out a valid token and fetches a new one when four fifths
// of its life are over. Brokers bound a login by the token's life, so each
// re-authentication gets a fresh one.
type tokenSource struct {
	opts OAuth
	http *http.Client

	mu struct {
		sync.Mutex
		token   string
		refresh time.Time
	}
}

func newTokenSource(o OAuth) (*tokenSource, error) {
	u, err := url.Parse(o.TokenEndpoint)
	if err != nil || o.TokenEndpoint == "" {
		return nil, errors.New("OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url")
	}
	s := &tokenSource{opts: o}
	switch u.Scheme {
	case "file":
		return s, nil
	case "http", "https":
		if o.ClientID == "" || o.ClientSecret == "" {
			return nil, errors.New("OAUTHBEARER needs clientId and clientSecret for a token endpoint")
		}
		tlsConfig, err := o.TLS.config()
		if err != nil {
			return nil, fmt.Errorf("token endpoint: %w", err)
		}
		s.http = &http.Client{
			Timeout: tokenTimeout,
			// One request in minutes: a kept connection is only a goroutine that lingers.
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, DisableKeepAlives: true},
		}
		return s, nil
	}
	return nil, fmt.Errorf("token endpoint scheme %q is not http, https or file", u.Scheme)
}

// auth is what the OAUTHBEARER mechanism calls for each login.
func (s *tokenSource) auth(ctx context.Context) (oauth.Auth, error) {
	token, err := s.get(ctx)
	if err != nil {
		return oauth.Auth{}, fmt.Errorf("fetch a token from %s: %w", s.endpointName(), err)
	}
	return oauth.Auth{Token: token, Extensions: s.opts.Extensions}, nil
}

// endpointName is the endpoint without its query, which may hold a secret.
func (s *tokenSource) endpointName() string {
	u, err := url.Parse(s.opts.TokenEndpoint)
	if err != nil {
		return "the token endpoint"
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}

// get holds the lock during the request on purpose: connections that log in at
// the same time share one fetch.
func (s *tokenSource) get(ctx context.Context) (string, error) {
	if s.http == nil {
		return s.readFile()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.mu.token != "" && now.Before(s.mu.refresh) {
		return s.mu.token, nil
	}
	token, life, err := s.request(ctx)
	if err != nil {
		return "", err
	}
	s.mu.token, s.mu.refresh = token, now.Add(time.Duration(float64(life)*refreshAt))
	return token, nil
}

func (s *tokenSource) readFile() (string, error) {
	u, err := url.Parse(s.opts.TokenEndpoint)
	if err != nil {
		return "", err
	}
	path := u.Path
	if path == "" {
		path = u.Opaque
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}

func (s *tokenSource) request(ctx context.Context) (token string, life time.Duration, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if s.opts.Scope != "" {
		form.Set("scope", s.opts.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opts.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, errors.New("the address cannot be used")
	}
	req.SetBasicAuth(url.QueryEscape(s.opts.ClientID), url.QueryEscape(s.opts.ClientSecret))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	resp, err := s.http.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok { // its text repeats the address with the query
			err = ue.Err
		}
		return "", 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenSize))
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		Token   string  `json:"access_token"`
		Expires float64 `json:"expires_in"`
		Error   string  `json:"error"`
	}
	jsonErr := json.Unmarshal(body, &answer)
	switch {
	case resp.StatusCode != http.StatusOK && answer.Error != "":
		return "", 0, fmt.Errorf("%s: %s", resp.Status, answer.Error)
	case resp.StatusCode != http.StatusOK:
		return "", 0, errors.New(resp.Status)
	case jsonErr != nil || answer.Token == "":
		return "", 0, errors.New("the answer has no access_token")
	}
	life = time.Duration(answer.Expires * float64(time.Second))
	if life <= 0 {
		life = lifeOf(answer.Token)
	}
	return answer.Token, life, nil
}

// lifeOf reads the end from a JWT; other tokens get a short life.
func lifeOf(token string) time.Duration {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return unknownTokenLife
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return unknownTokenLife
	}
	var claims struct {
		Expiry float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expiry <= 0 {
		return unknownTokenLife
	}
	return time.Until(time.Unix(int64(claims.Expiry), 0))
}
