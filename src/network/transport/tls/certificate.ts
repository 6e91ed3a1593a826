/**
 * The certificate of the TLS listeners: from files, or a self-signed one. Clients accept any certificate by default,
 * because the connections inside prove the nodes.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { SvcError } from '../../../foundation/errors.ts';

export interface TlsCertificate {
  /** PEM: the certificate, and the chain that leads to its issuer. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
}

/* A self-signed X.509 certificate (RFC 5280) in DER. Node can only read certificates. */

const TAG = { integer: 0x02, bitString: 0x03, utf8: 0x0c, utcTime: 0x17, generalizedTime: 0x18 } as const;
const SEQUENCE = 0x30;
const SET = 0x31;
/** The version, context-specific tag 0. */
const VERSION = 0xa0;
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

function certificateOf(publicKey: KeyObject, privateKey: KeyObject, commonName: string): string {
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
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const certificate = der(SEQUENCE, body, ECDSA_SHA256, bits(sign('sha256', body, privateKey)));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** A new self-signed certificate with a P-256 key. */
export function selfSigned(commonName = 'svcd'): TlsCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  return { cert: certificateOf(publicKey, privateKey, commonName), key };
}

/** The paths of PEM files; both are empty for a self-signed certificate. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

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
export async function readCertificate(files: CertificateFiles): Promise<TlsCertificate> {
  if (files.cert === '' || files.key === '')
    throw new SvcError('config_invalid', {
      message: 'Set both tls_cert and tls_key, or neither.',
      details: { key: files.cert === '' ? 'tls_cert' : 'tls_key' },
    });
  const [cert, key] = await Promise.all([read('tls_cert', files.cert), read('tls_key', files.key)]);
  let isPair: boolean;
  try {
    isPair = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
  } catch (cause) {
    throw new SvcError('config_invalid', {
      message: 'tls_cert or tls_key is not a PEM file without a password.',
      details: { key: 'tls_cert' },
      cause,
    });
  }
  if (!isPair)
    throw new SvcError('config_invalid', {
      message: 'tls_key does not belong to the first certificate in tls_cert.',
      details: { key: 'tls_key' },
    });
  return { cert, key };
}
