package storeusers

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"time"
)

// tokenLife is the lifetime of a Prometheus token, longer than that of any pod. Deleting its user or rotating its key revokes it.
const tokenLife = 10 * 365 * 24 * time.Hour

// MetricsToken returns a bearer token for the store's metrics: a JWT (RFC 7519) with the user's name, signed with its secret key.
func MetricsToken(accessKey, secretKey string, now time.Time) (string, error) {
	encode := base64.RawURLEncoding.EncodeToString
	claims, err := json.Marshal(map[string]any{"iss": "prometheus", "sub": accessKey, "exp": now.Add(tokenLife).Unix()})
	if err != nil {
		return "", err
	}
	signed := encode([]byte(`{"alg":"HS512","typ":"JWT"}`)) + "." + encode(claims)
	mac := hmac.New(sha512.New, []byte(secretKey))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil)), nil
}
