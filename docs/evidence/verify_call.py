# Verifies a call with evidence, with the package "cryptography": see docs/evidence.md.
import base64, hashlib, re, time
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

INPUT = re.compile(r'(?:^|, )svcd=(\("@method" "@request-target"( "content-digest")? "svc-caller-aid" "svc-local-aid" '
                   r'"svc-caller-delegation"\);created=(\d{1,12});nonce="([\w-]{22})";keyid="[\w:#]{1,200}";'
                   r'alg="ed25519";tag="svcd-call")\Z', re.ASCII)


def read_proof(data):
    """The members of a delegation proof with their start and end: deterministic CBOR with one-letter keys."""
    members, at = {}, 1
    while at < len(data):
        start, name, head = at, chr(data[at + 1]), data[at + 2]
        width = 0 if head & 31 < 24 else 1 << (head & 31) - 24
        at += 3 + width
        number = int.from_bytes(data[at - width:at], 'big') if width else head & 31
        value = number
        if head >> 5 == 2:
            value, at = data[at:at + number], at + number
        members[name] = (start, at, value)
    return members


def aid_of(key):
    """The AID of a native agent's public key: bech32m of its bytes."""
    number = int.from_bytes(key, 'big') << 4
    data = [number >> 5 * i & 31 for i in range(51, -1, -1)]
    check = 1
    for value in [3, 3, 3, 0, 1, 9, 4] + data + [0] * 6:
        top, check = check >> 25, (check & 0x1ffffff) << 5 ^ value
        for i, g in enumerate((0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3)):
            check ^= g if top >> i & 1 else 0
    data += [(check ^ 0x2bc830a3) >> 5 * i & 31 for i in range(5, -1, -1)]
    return 'aid1' + ''.join('qpzry9x8gf2tvdw0s3jn54khce6mua7l'[value] for value in data)


def proven_caller(method, target, headers, body, me, seen, now=None):
    """The AID of the proven caller, or None. Header names are lower case; `target` is path and query."""
    now = time.time() if now is None else now
    found = INPUT.search(headers.get('signature-input', ''))
    signature = re.search(r'(?:^|, )svcd=:([A-Za-z\d+/]{85}[AQgw]==):\Z', headers.get('signature', ''), re.ASCII)
    delegation = re.fullmatch(r':([\w+/]+={0,2}):', headers.get('svc-caller-delegation', ''), re.ASCII)
    if not found or not signature or not delegation or headers.get('svc-local-aid') != me:
        return None
    params, covered, created, nonce = found.groups()
    digest = 'sha-256=:' + base64.b64encode(hashlib.sha256(body).digest()).decode() + ':'
    if int(created) > now + 60 or int(created) < now - 360 or nonce in seen:
        return None
    if not covered or headers.get('content-digest') != digest:
        return None
    names = ('content-digest', 'svc-caller-aid', 'svc-local-aid', 'svc-caller-delegation')
    lines = [('@method', method), ('@request-target', target)] + [(name, headers[name]) for name in names]
    base = '\n'.join(f'"{name}": {value}' for name, value in lines + [('@signature-params', params)])
    data = base64.b64decode(delegation[1])
    try:
        proof = read_proof(data)
        if data[0] != 0xa7 or ''.join(proof) != 'aegiksv' or proof['a'][2][0] != 0xa0:
            return None
        Ed25519PublicKey.from_public_bytes(proof['k'][2]).verify(base64.b64decode(signature[1]), base.encode('latin1'))
        grant = b'svcd/delegation/v1\0\xa6' + data[1:proof['g'][0]] + data[proof['g'][1]:]
        master = proof['a'][2][1:]
        Ed25519PublicKey.from_public_bytes(master).verify(proof['g'][2], grant)
    except (InvalidSignature, ValueError, TypeError, IndexError, KeyError):
        return None
    if aid_of(master) != headers['svc-caller-aid'] or proof['v'][2] != 1 or proof['s'][2] != 1:
        return None
    if now < proof['i'][2] - 60 or (proof['e'][2] != 0 and now > proof['e'][2] + 60):
        return None
    seen.add(nonce)
    return headers['svc-caller-aid']
