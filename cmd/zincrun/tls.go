package main

import (
	"crypto/tls"
	"net"
	"os"
	"sync"
	"time"
)

// serveTLS makes connections of l encrypted, with a certificate that is read again
// when its file changes.
func serveTLS(l net.Listener, certFile, keyFile string) (net.Listener, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	if _, err := c.get(nil); err != nil {
		l.Close()
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{GetCertificate: c.get, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}), nil
}

type certificate struct {
	certFile, keyFile string
	mu                sync.Mutex
	current           *tls.Certificate
	changed, looked   time.Time
}

// get returns the certificate; one that cannot be read takes no other's place.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && time.Since(c.looked) < time.Second {
		return c.current, nil
	}
	c.looked = time.Now()
	info, err := os.Stat(c.certFile)
	if err == nil && c.current != nil && info.ModTime().Equal(c.changed) {
		return c.current, nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		if c.current != nil {
			return c.current, nil
		}
		return nil, err
	}
	c.current = &pair
	if info != nil {
		c.changed = info.ModTime()
	}
	return c.current, nil
}
