package storeusers

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"time"
)

// tokenLife is how long a token of Prometheus is good for: longer than any pod lives. It ends with its user, or with its key.
const tokenLife = 10 * 365 * 24 * time.Hour

// MetricsToken is a bearer token for the store's metrics: a JWT (RFC 7519) with the user's name, signed with its secret key.
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
