// Verifies a call with evidence, with Node alone. See docs/evidence.md.
import { createHash, createPublicKey, verify } from 'node:crypto';

const INPUT =
  /(?:^|, )svcd=(\("@method" "@request-target"( "content-digest")? "svc-caller-aid" "svc-local-aid" "svc-caller-delegation"\);created=(\d{1,12});nonce="([\w-]{22})";keyid="[\w:#]{1,200}";alg="ed25519";tag="svcd-call")$/;
const SIGNATURE = /(?:^|, )svcd=:([A-Za-z\d+/]{85}[AQgw]==):$/;

/** Verifies Ed25519 with raw keys. */
function isSigned(publicKey, message, signature) {
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), publicKey]);
  return verify(null, message, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature);
}

/** The members of a delegation proof with their start and end: deterministic CBOR with one-letter keys. */
function readProof(bytes) {
  const members = {};
  let at = 1;
  while (at < bytes.length) {
    const start = at;
    const name = String.fromCharCode(bytes[at + 1]);
    const head = bytes[at + 2];
    const width = (head & 31) < 24 ? 0 : 1 << ((head & 31) - 24);
    at += 3 + width;
    const number = width === 0 ? head & 31 : Number(BigInt(`0x${bytes.subarray(at - width, at).toString('hex')}`));
    if (head >> 5 === 2) at += number;
    members[name] = { start, end: at, value: head >> 5 === 2 ? bytes.subarray(at - number, at) : number };
  }
  return members;
}

/** The AID of a native agent's public key: bech32m of its bytes. */
function aidOf(publicKey) {
  let [bits, held, data] = [0, 0, []];
  for (const byte of publicKey) {
    held = ((held << 8) | byte) & 0xfff;
    for (bits += 8; bits >= 5; ) data.push((held >> (bits -= 5)) & 31);
  }
  data.push((held << (5 - bits)) & 31);
  let sum = 1;
  for (const value of [3, 3, 3, 0, 1, 9, 4, ...data, 0, 0, 0, 0, 0, 0]) {
    const top = sum >>> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ value;
    [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3].forEach((g, i) => (sum ^= (top >> i) & 1 ? g : 0));
  }
  for (let i = 5; i >= 0; i--) data.push(((sum ^ 0x2bc830a3) >>> (5 * i)) & 31);
  return `aid1${data.map((value) => 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'[value]).join('')}`;
}

/** The master key that delegated to the key that signed `base`; null if a signature is wrong. */
function masterOf(bytes, base, signature, now) {
  const proof = readProof(bytes);
  if (bytes[0] !== 0xa7 || Object.keys(proof).join('') !== 'aegiksv' || proof.a.value[0] !== 0xa0) return null;
  if (!isSigned(proof.k.value, base, signature)) return null;
  const begin = Buffer.from('svcd/delegation/v1\0\xa6', 'latin1');
  const grant = Buffer.concat([begin, bytes.subarray(1, proof.g.start), bytes.subarray(proof.g.end)]);
  const master = proof.a.value.subarray(1);
  if (!isSigned(master, grant, proof.g.value) || proof.v.value !== 1 || proof.s.value !== 1) return null;
  const [begins, ends] = [proof.i.value, proof.e.value];
  return now < begins - 60 || (ends !== 0 && now > ends + 60) ? null : master;
}

/**
 * The AID of the proven caller, or null. `me` is the AID of this service's agent; `seen` is a set of nonces. Remove
 * nonces older than seven minutes from time to time.
 */
export function provenCaller({ method, url, headers }, body, { me, seen, now = Date.now() / 1000 }) {
  const [, params, covered, created, nonce] = INPUT.exec(headers['signature-input'] ?? '') ?? [];
  const [, signature] = SIGNATURE.exec(headers['signature'] ?? '') ?? [];
  const [, delegation] = /^:([\w+/]+={0,2}):$/.exec(headers['svc-caller-delegation'] ?? '') ?? [];
  if (params === undefined || signature === undefined || delegation === undefined) return null;
  if (headers['svc-local-aid'] !== me || created > now + 60 || created < now - 360 || seen.has(nonce)) return null;
  const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
  if (covered === undefined || headers['content-digest'] !== digest) return null;

  const names = ['content-digest', 'svc-caller-aid', 'svc-local-aid', 'svc-caller-delegation'];
  const lines = [['@method', method], ['@request-target', url], ...names.map((name) => [name, headers[name]])];
  const base = [...lines, ['@signature-params', params]].map(([name, value]) => `"${name}": ${value}`).join('\n');
  const caller = headers['svc-caller-aid'];
  try {
    const [proof, signed] = [delegation, signature].map((text) => Buffer.from(text, 'base64'));
    const master = masterOf(proof, Buffer.from(base, 'latin1'), signed, now);
    if (master === null || aidOf(master) !== caller) return null;
  } catch {
    return null;
  }
  seen.add(nonce);
  return caller;
}
