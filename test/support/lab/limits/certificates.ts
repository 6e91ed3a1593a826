/** Certificates of an inspecting proxy: its authority, and a certificate for each host (X.509, ECDSA with P-256). */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIPv4, isIPv6 } from 'node:net';

/** DER tags. */
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const UTF8_STRING = 0x0c;
const SEQUENCE = 0x30;
const SET = 0x31;
const TIME = 0x18;
/** Object identifiers with tag and length. */
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('0603550403', 'hex');
const KEY_USAGE = Buffer.from('0603551d0f', 'hex');
const ALTERNATIVE_NAME = Buffer.from('0603551d11', 'hex');
const BASIC_CONSTRAINTS = Buffer.from('0603551d13', 'hex');
/** Extension values: an authority that signs certificates, and the critical flag. */
const IS_AUTHORITY = Buffer.from('30030101ff', 'hex');
const SIGNS_CERTIFICATES = Buffer.from('03020106', 'hex');
const CRITICAL = Buffer.from('0101ff', 'hex');
/** Validity of every certificate. */
const FROM = '20200101000000Z';
const UNTIL = '21200101000000Z';

/** A certificate and its key, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...head]), body]);
}

/** An explicitly tagged part of a sequence. */
function numbered(number: number, ...parts: readonly Uint8Array[]): Buffer {
  return der(0xa0 + number, ...parts);
}

function nameOf(text: string): Buffer {
  return der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, Buffer.from(text)))));
}

/** The eight groups of an IPv6 address, as 16 bytes. */
function ipv6Bytes(host: string): Buffer {
  const [left = '', right] = host.split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [groups(left), groups(right ?? '')];
  const middle = Array<string>(8 - before.length - after.length).fill('0');
  const all = [...before, ...(right === undefined ? [] : middle), ...after];
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex');
}

function alternativeName(host: string): Buffer {
  if (isIPv4(host)) return der(0x87, Buffer.from(host.split('.').map(Number)));
  return isIPv6(host) ? der(0x87, ipv6Bytes(host)) : der(0x82, Buffer.from(host));
}

interface Contents {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly extensions: readonly Buffer[];
}

function certificate({ subject, issuer, publicKey, signer, extensions }: Contents): string {
  const algorithm = der(SEQUENCE, ECDSA_WITH_SHA256);
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)]);
  const contents = der(
    SEQUENCE,
    numbered(0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, serial),
    algorithm,
    nameOf(issuer),
    der(SEQUENCE, der(TIME, Buffer.from(FROM)), der(TIME, Buffer.from(UNTIL))),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    numbered(3, der(SEQUENCE, ...extensions)),
  );
  const signature = sign('sha256', contents, signer);
  const whole = der(SEQUENCE, contents, algorithm, der(BIT_STRING, Buffer.from([0]), signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** A certificate authority. */
export class Authority {
  readonly #name: string;
  readonly #key: KeyObject;
  /** Its own certificate, PEM. */
  readonly cert: string;

  constructor(name: string) {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#name = name;
    this.#key = privateKey;
    const extensions = [
      der(SEQUENCE, BASIC_CONSTRAINTS, CRITICAL, der(OCTET_STRING, IS_AUTHORITY)),
      der(SEQUENCE, KEY_USAGE, CRITICAL, der(OCTET_STRING, SIGNS_CERTIFICATES)),
    ];
    this.cert = certificate({ subject: name, issuer: name, publicKey, signer: privateKey, extensions });
  }

  /** A certificate for a host name or an IP address. */
  issue(host: string): Certificate {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const names = der(OCTET_STRING, der(SEQUENCE, alternativeName(host)));
    const cert = certificate({
      subject: host,
      issuer: this.#name,
      publicKey,
      signer: this.#key,
      extensions: [der(SEQUENCE, ALTERNATIVE_NAME, names)],
    });
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) };
  }
}
