/**
 * Certificates of TLS servers: from files, self-signed ones, and requests for signed ones. Clients of helpers accept any
 * certificate by default, because the connections inside prove the nodes.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { SvcError } from './errors.ts';

export interface TlsCertificate {
  /** PEM: the certificate, and the chain that leads to its issuer. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
}

/* X.509 (RFC 5280) and PKCS #10 (RFC 2986) in DER. Node can only read certificates. */

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octets: 0x04,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
} as const;
const SEQUENCE = 0x30;
const SET = 0x31;
/** Context-specific tags: the version of a certificate, its extensions, and the attributes of a request. */
const VERSION = 0xa0;
const EXTENSIONS = 0xa3;
const ATTRIBUTES = 0xa0;
/** A DNS name as a GeneralName. */
const DNS_NAME = 0x82;
const TRUE = 0xff;
/** subjectAltName, 2.5.29.17. */
const SUBJECT_ALT_NAME = Buffer.from('0603551d11', 'hex');
/** extensionRequest, 1.2.840.113549.1.9.14. */
const EXTENSION_REQUEST = Buffer.from('06092a864886f70d01090e', 'hex');
/** acmeIdentifier, 1.3.6.1.5.5.7.1.31 (RFC 8737). */
const ACME_IDENTIFIER = Buffer.from('06082b0601050507011f', 'hex');
/** ecdsa-with-SHA256, 1.2.840.10045.4.3.2, as an AlgorithmIdentifier. */
const ECDSA_SHA256 = Buffer.from('300a06082a8648ce3d040302', 'hex');
/** commonName, 2.5.4.3. */
const COMMON_NAME = Buffer.from('0603550403', 'hex');
/** The dates do not depend on the clock of this machine. The last one means no expiry (RFC 5280, 4.1.2.5). */
const NOT_BEFORE = '200101000000Z';
const NOT_AFTER = '99991231235959Z';
const SERIAL_BYTES = 16;

function length(bytes: number): Buffer {
  if (bytes < 0x80) return Buffer.of(bytes);
  return bytes < 0x100 ? Buffer.of(0x81, bytes) : Buffer.of(0x82, bytes >> 8, bytes & 0xff);
}

function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.of(tag), length(body.length), body]);
}

function text(tag: number, value: string): Buffer {
  return der(tag, Buffer.from(value));
}

/** A bit string of whole bytes. */
function bits(bytes: Uint8Array): Buffer {
  return der(TAG.bitString, Buffer.of(0), bytes);
}

function name(commonName: string): Buffer {
  return der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, text(TAG.utf8, commonName))));
}

function dnsNames(...names: readonly string[]): Buffer {
  const list = der(SEQUENCE, ...names.map((one) => text(DNS_NAME, one)));
  return der(SEQUENCE, SUBJECT_ALT_NAME, der(TAG.octets, list));
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

function signed(body: Buffer, privateKey: KeyObject): Buffer {
  return der(SEQUENCE, body, ECDSA_SHA256, bits(sign('sha256', body, privateKey)));
}

function newKeys() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  return { spki: publicKey.export({ type: 'spki', format: 'der' }), privateKey, key };
}

/** A new self-signed certificate with a P-256 key. */
function ownCertificate(commonName: string, extensions: readonly Buffer[]): TlsCertificate {
  const { spki, privateKey, key } = newKeys();
  const serial = randomBytes(SERIAL_BYTES);
  // Positive, and without leading zeros.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const body = der(
    SEQUENCE,
    der(VERSION, der(TAG.integer, Buffer.of(2))),
    der(TAG.integer, serial),
    ECDSA_SHA256,
    name(commonName),
    der(SEQUENCE, text(TAG.utcTime, NOT_BEFORE), text(TAG.generalizedTime, NOT_AFTER)),
    name(commonName),
    spki,
    ...(extensions.length === 0 ? [] : [der(EXTENSIONS, der(SEQUENCE, ...extensions))]),
  );
  return { cert: pem('CERTIFICATE', signed(body, privateKey)), key };
}

/** A new self-signed certificate with a P-256 key. @param dnsName a name that it is valid for */
export function selfSigned(commonName = 'svcd', dnsName?: string): TlsCertificate {
  return ownCertificate(commonName, dnsName === undefined ? [] : [dnsNames(dnsName)]);
}

/** The certificate that proves control of a host to an ACME server (RFC 8737). @param digest of the key authorization */
export function challengeCertificate(host: string, digest: Uint8Array): TlsCertificate {
  const identifier = der(TAG.octets, der(TAG.octets, digest));
  const critical = der(TAG.boolean, Buffer.of(TRUE));
  return ownCertificate('svcd', [dnsNames(host), der(SEQUENCE, ACME_IDENTIFIER, critical, identifier)]);
}

/** A certificate request for a host in DER, and its new P-256 key in PEM. */
export function certificateRequest(host: string): { readonly csr: Buffer; readonly key: string } {
  const { spki, privateKey, key } = newKeys();
  const extensions = der(SEQUENCE, EXTENSION_REQUEST, der(SET, der(SEQUENCE, dnsNames(host))));
  // No subject: authorities read the alternative names only.
  const body = der(SEQUENCE, der(TAG.integer, Buffer.of(0)), der(SEQUENCE), spki, der(ATTRIBUTES, extensions));
  return { csr: signed(body, privateKey), key };
}

/** The paths of PEM files; both are empty for a self-signed certificate. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** The keys of the configuration that name the files. */
interface FileKeys {
  readonly cert: string;
  readonly key: string;
}

const HELPER_KEYS: FileKeys = { cert: 'tls_cert', key: 'tls_key' };

async function read(key: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new SvcError('config_invalid', {
      message: `Cannot read the file of ${key}. Check the path, and that the user of svcd can read it.`,
      details: { key },
      cause,
    });
  }
}

/**
 * Reads a certificate and its key.
 * @throws SvcError `config_invalid` if a file cannot be read or parsed, or if the key belongs to another certificate
 */
export async function readCertificate(files: CertificateFiles, keys: FileKeys = HELPER_KEYS): Promise<TlsCertificate> {
  if (files.cert === '' || files.key === '')
    throw new SvcError('config_invalid', {
      message: `Set both ${keys.cert} and ${keys.key}, or neither.`,
      details: { key: files.cert === '' ? keys.cert : keys.key },
    });
  const [cert, key] = await Promise.all([read(keys.cert, files.cert), read(keys.key, files.key)]);
  let isPair: boolean;
  try {
    isPair = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (cause) {
    throw new SvcError('config_invalid', {
      message: `${keys.cert} or ${keys.key} is not a PEM file without a password.`,
      details: { key: keys.cert },
      cause,
    });
  }
  if (!isPair)
    throw new SvcError('config_invalid', {
      message: `${keys.key} does not belong to the first certificate in ${keys.cert}.`,
      details: { key: keys.key },
    });
  return { cert, key };
}
