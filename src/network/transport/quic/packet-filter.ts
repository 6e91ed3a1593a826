/**
 * A filter for the kernel (classic BPF) that keeps first packets of new connections from a socket, those of some
 * sources or nearly all, and lets everything else pass: connections that stand notice nothing.
 */

/** Sources that one filter names. */
export const MAX_REFUSED_SOURCES = 32;
/** Where no source stands out, one first packet of so many passes. */
const PASS_ONE_IN = 64;

/** Instructions of classic BPF (linux/bpf_common.h). */
const LOAD_BYTE = 0x30;
const LOAD_WORD = 0x20;
const AND = 0x54;
const IF_EQUAL = 0x15;
const IF_GREATER = 0x25;
const RETURN = 0x06;

/** Where a socket's filter finds the datagram, behind the header of UDP, and offsets of Linux for the header of IP and a random word. */
const PAYLOAD_AT = 8;
const IP_HEADER_AT = 0xfff00000;
const RANDOM_AT = 0xfffff000 + 56;
const IPV4_SOURCE_AT = IP_HEADER_AT + 12;
const IPV6_SOURCE_AT = IP_HEADER_AT + 8;

/** A first packet of QUIC: the form is long and the type 0 (RFC 9000, 17.2.2). */
const FORM_AND_TYPE = 0xb0;
const INITIAL = 0x80;
const WHOLE = 0xffffffff;
const IPV4_BYTES = 4;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

const PASS: Instruction = [RETURN, 0, 0, WHOLE];
const DROP: Instruction = [RETURN, 0, 0, 0];

/** Drops where the words at a place are these, and goes on where they are not. */
function dropWhere(at: number, words: readonly number[]): Instruction[] {
  const [word, ...rest] = words;
  if (word === undefined) return [DROP];
  const then = dropWhere(at + 4, rest);
  return [[LOAD_WORD, 0, 0, at], [IF_EQUAL, 0, then.length, word], ...then];
}

function wordsOf(source: Uint8Array): number[] {
  const view = new DataView(source.buffer, source.byteOffset, source.length);
  return Array.from({ length: source.length / 4 }, (_, i) => view.getUint32(4 * i));
}

/** Passes what is not of this version of IP to what comes behind these instructions. */
function ofVersion(version: number, instructions: readonly Instruction[]): Instruction[] {
  if (instructions.length === 0) return [];
  return [
    [LOAD_BYTE, 0, 0, IP_HEADER_AT],
    [AND, 0, 0, 0xf0],
    [IF_EQUAL, 0, instructions.length, version << 4],
    ...instructions,
  ];
}

export interface Refused {
  /** IPv4 addresses, four bytes each, and IPv6 networks, eight. */
  readonly sources: readonly Uint8Array[];
  /** Whether only few of all others pass. */
  readonly thinned: boolean;
}

/** The filter as the kernel takes it, eight bytes an instruction, in the byte order of the platforms that the engine is built for. */
export function filterOf({ sources, thinned }: Refused): Uint8Array {
  const named = sources.slice(0, MAX_REFUSED_SOURCES);
  const ofKind = (isIpv4: boolean, at: number): Instruction[] =>
    named
      .filter(({ length }) => (length === IPV4_BYTES) === isIpv4)
      .flatMap((source) => dropWhere(at, wordsOf(source)));
  const program: Instruction[] = [
    [LOAD_BYTE, 0, 0, PAYLOAD_AT],
    [AND, 0, 0, FORM_AND_TYPE],
    [IF_EQUAL, 1, 0, INITIAL],
    PASS,
    ...ofVersion(4, ofKind(true, IPV4_SOURCE_AT)),
    ...ofVersion(6, ofKind(false, IPV6_SOURCE_AT)),
    ...(thinned
      ? ([[LOAD_WORD, 0, 0, RANDOM_AT], [IF_GREATER, 0, 1, Math.floor(WHOLE / PASS_ONE_IN)], DROP] as const)
      : []),
    PASS,
  ];
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(([code, ifTrue, ifFalse, operand], i) => {
    bytes.writeUInt16LE(code, 8 * i);
    bytes.writeUInt8(ifTrue, 8 * i + 2);
    bytes.writeUInt8(ifFalse, 8 * i + 3);
    bytes.writeUInt32LE(operand, 8 * i + 4);
  });
  return bytes;
}
