package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/minio/minio-go/v7"
)

// Cause classifies why an object store cannot be used.
type Cause string

// Causes.
const (
	CauseName          Cause = "NameNotFound"
	CauseRefused       Cause = "ConnectionRefused"
	CauseTimeout       Cause = "Timeout"
	CauseNotTLS        Cause = "StoreSpeaksNoTLS"
	CauseNeedsTLS      Cause = "StoreNeedsTLS"
	CauseExpired       Cause = "CertificateExpired"
	CauseNotYetValid   Cause = "CertificateNotYetValid"
	CauseAuthority     Cause = "CertificateAuthorityUnknown"
	CauseHostname      Cause = "CertificateForAnotherName"
	CauseCertificate   Cause = "CertificateRefused"
	CauseCAFile        Cause = "AuthorityUnreadable"
	CauseNoCredentials Cause = "CredentialsMissing"
	CauseAccessKey     Cause = "AccessKeyUnknown"
	CauseSecretKey     Cause = "SecretKeyWrong"
	CauseToken         Cause = "TokenExpired"
	CauseDenied        Cause = "AccessDenied"
	CauseClock         Cause = "ClockSkew"
	CauseRegion        Cause = "WrongRegion"
	CauseBucket        Cause = "BucketMissing"
	CauseFull          Cause = "StoreFull"
	CauseServer        Cause = "StoreFails"
	CauseUnconditional Cause = "ConditionalWritesIgnored"
	CauseOther         Cause = "Unreachable"
)

// Fault describes why an object store cannot be used: the operation, the finding and the remedy. For errors.Is it matches ErrNoBucket or
// ErrUnreachable, and the underlying error.
type Fault struct {
	Cause Cause
	// Tried is the operation with its address, Found the finding, and Remedy the action that helps.
	Tried, Found, Remedy string

	err error
}

func (f *Fault) Error() string {
	what := f.is()
	if f.Cause == CauseUnconditional {
		what = errUnsuitable
	}
	return fmt.Sprintf("%s: %s: %s; %s", f.Tried, what, f.Found, f.Remedy)
}

// Unwrap lets errors.Is match both.
func (f *Fault) Unwrap() []error { return []error{f.is(), f.err} }

func (f *Fault) is() error {
	if f.Cause == CauseBucket {
		return ErrNoBucket
	}
	return ErrUnreachable
}

// CauseOf returns the Cause of an error of this package; empty if it has none.
func CauseOf(err error) Cause {
	if fault, ok := errors.AsType[*Fault](err); ok {
		return fault.Cause
	}
	return ""
}

// Errors on the client's side of the connection.
var (
	errNoCredentials = errors.New("no credentials")
	errCAFile        = errors.New("certificates of the store's authority")
	errUnsuitable    = errors.New("object store unsuitable")
)

// remedies are the actions for each cause, with the ones for a cluster first.
var remedies = map[Cause]string{
	CauseName:    "correct the host in the ledger's endpoint (objectStore.external.endpoint of the chart), or repair the cluster's DNS",
	CauseRefused: "start the store, or correct the port in the ledger's endpoint",
	CauseTimeout: "check that the store is up, that its address is reachable from here, and that no network policy or firewall is " +
		"in between",
	CauseNotTLS: "write http:// in the ledger's endpoint (objectStore.external.secure=false of the chart), or give the store a " +
		"certificate",
	CauseNeedsTLS:    "write https:// in the ledger's endpoint (objectStore.external.secure=true of the chart)",
	CauseExpired:     "renew the store's certificate",
	CauseNotYetValid: "check the clocks of this machine and of the store",
	CauseAuthority: "give the certificate of the authority that signed the store's: objectStore.external.ca of the chart, AWS_CA_BUNDLE " +
		"elsewhere",
	CauseHostname:      "use a name of the store that its certificate has, or issue a certificate for this one",
	CauseCertificate:   "give the store a certificate that can be verified",
	CauseCAFile:        "give it at least one certificate in PEM form: objectStore.external.ca of the chart, AWS_CA_BUNDLE elsewhere",
	CauseNoCredentials: "give credentials: accessKey and secretKey in the ledger's Secret, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
	CauseAccessKey: "correct the access key in the ledger's Secret (outside a cluster AWS_ACCESS_KEY_ID), or create its user in the " +
		"store: in a bundled one helm upgrade does",
	CauseSecretKey: "correct the secret key in the ledger's Secret (outside a cluster AWS_SECRET_ACCESS_KEY)",
	CauseToken:     "renew the temporary credentials",
	CauseDenied:    "allow these credentials s3:ListBucket on the bucket, and s3:GetObject and s3:PutObject on its objects",
	CauseClock:     "set the clock of this machine or of the store: they may differ by 15 minutes",
	CauseRegion:    "correct region in the ledger's URL (objectStore.region of the chart)",
	CauseBucket:    "create the bucket, or correct its name",
	CauseFull:      "give the store more room, or delete objects that are no longer needed",
	CauseServer:    "read the store's logs",
	CauseUnconditional: "use a store that honours If-None-Match and If-Match of PutObject, or a version of this one that does; " +
		"docs/reference/object-stores.md lists the tested ones",
	CauseOther: "check that the endpoint is right and that the store runs",
}

func newFault(tried string, cause Cause, answer string, err error) *Fault {
	return &Fault{Cause: cause, Tried: tried, Found: answer, Remedy: remedies[cause], err: err}
}

// name inserts the name of the Secret with the credentials into the remedy, if it is known.
func (f *Fault) name(secret string) {
	if secret != "" {
		f.Remedy = strings.NewReplacer("the ledger's Secret", "Secret "+secret, "these credentials", "the credentials in Secret "+secret).
			Replace(f.Remedy)
	}
}

// diagnose builds the Fault of a client error. anonymous means that the request had no credentials.
func diagnose(tried string, err error, anonymous bool) *Fault {
	if response := minio.ToErrorResponse(err); response.StatusCode != 0 || response.Code != "" {
		cause, answer := answered(response, anonymous)
		return newFault(tried, cause, answer, err)
	}
	cause := unanswered(err)
	return newFault(tried, cause, err.Error(), err)
}

// Explain builds the Fault of a failed request to the store's admin API.
func Explain(tried string, err error) error { return diagnose(tried, err, false) }

// codes maps S3 error codes to causes where the code alone decides, independently of the HTTP status.
var codes = map[string]Cause{
	"NoSuchBucket":                   CauseBucket,
	"InvalidAccessKeyId":             CauseAccessKey,
	"SignatureDoesNotMatch":          CauseSecretKey,
	"ExpiredToken":                   CauseToken,
	"InvalidToken":                   CauseToken,
	"InvalidTokenId":                 CauseToken,
	"RequestTimeTooSkewed":           CauseClock,
	"AuthorizationHeaderMalformed":   CauseRegion,
	"InvalidRegion":                  CauseRegion,
	"PermanentRedirect":              CauseRegion,
	"XMinioStorageFull":              CauseFull,
	"QuotaExceeded":                  CauseFull,
	"XMinioAdminBucketQuotaExceeded": CauseFull,
}

// answered returns the cause and the description of an S3 error response.
func answered(response minio.ErrorResponse, anonymous bool) (Cause, string) {
	text := fmt.Sprintf("the store answers %s (HTTP %d)", response.Code, response.StatusCode)
	if response.Message != "" && response.Message != response.Code {
		text += ": " + strings.TrimSuffix(response.Message, ".")
	}
	cause, known := codes[response.Code]
	switch {
	case known:
		return cause, text
	case strings.Contains(response.Message, "HTTP request to an HTTPS server"):
		return CauseNeedsTLS, text
	case response.StatusCode == http.StatusForbidden, response.StatusCode == http.StatusUnauthorized:
		if anonymous {
			return CauseNoCredentials, text
		}
		return CauseDenied, text
	case response.StatusCode >= http.StatusInternalServerError:
		return CauseServer, text
	default:
		return CauseOther, text
	}
}

// unanswered returns the cause of a request without a response.
func unanswered(err error) Cause {
	var (
		name      *net.DNSError
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		refused   *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		network   net.Error
	)
	switch {
	case errors.Is(err, errNoCredentials):
		return CauseNoCredentials
	case errors.Is(err, errCAFile):
		return CauseCAFile
	case errors.As(err, &name):
		return CauseName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		// The library has one reason code for both cases; only the text differs.
		if strings.Contains(invalid.Detail, "is before") {
			return CauseNotYetValid
		}
		return CauseExpired
	case errors.As(err, &authority):
		return CauseAuthority
	case errors.As(err, &hostname):
		return CauseHostname
	case errors.As(err, &refused), errors.As(err, &invalid):
		return CauseCertificate
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return CauseNotTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return CauseRefused
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return CauseTimeout
	default:
		return CauseOther
	}
}
