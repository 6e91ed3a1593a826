/**
 * Connects to a program of this user on 127.0.0.1. Another user of the machine can take a port that a program is about to
 * use, so svcd checks the owner of the listener (Linux; on other systems it accepts any listener).
 */
import { once } from 'node:events';
import { open, readdir, readFile, readlink } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { endianness } from 'node:os';
import { listening } from './stream-listeners.ts';

const HOST = '127.0.0.1';
/** The listening sockets come first in these tables, so only their beginning is read. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];
const TABLE_PART_BYTES = 32 * 1024;
const MAX_TABLE_BYTES = 1024 * 1024;
/** The state of a listening socket. */
const LISTEN = '0A';
/** Root can act as any user, and port forwarders of containers run as root. */
const ROOT = 0;

/** A socket that listens on a port. */
export interface Listener {
  /** The same for the whole life of the socket, and for no other. */
  readonly inode: string;
  readonly uid: number;
}

/** Another user listens on the port. */
export class ForeignListener extends Error {
  constructor(port: number) {
    super(`A program of another user listens on ${HOST}:${port}.`);
  }
}

function hexAddress(bytes: readonly number[]): string {
  const words = Array.from({ length: bytes.length / 4 }, (_, i) => bytes.slice(4 * i, 4 * i + 4));
  const inOrder = endianness() === 'LE' ? words.map((word) => word.toReversed()) : words;
  return Buffer.from(inOrder.flat()).toString('hex').toUpperCase();
}

const IPV4 = [127, 0, 0, 1];
/** Addresses that receive connections to 127.0.0.1, the most specific first. The kernel prefers them in this order. */
const RECEIVING = [
  [hexAddress(IPV4), hexAddress([...Array.from({ length: 10 }, () => 0), 0xff, 0xff, ...IPV4])],
  [hexAddress([0, 0, 0, 0])],
  [hexAddress(Array.from({ length: 16 }, () => 0))],
];

/** The sockets in the text of the tables that receive connections to a port of 127.0.0.1. */
export function listenersIn(tables: string, port: number): Listener[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = tables.split('\n').flatMap((line) => {
    const [, local = '', , state, , , , uid, , inode = ''] = line.trim().split(/\s+/);
    return state === LISTEN && local.endsWith(end)
      ? [{ address: local.slice(0, -end.length), inode, uid: Number(uid) }]
      : [];
  });
  const best = RECEIVING.find((addresses) => rows.some(({ address }) => addresses.includes(address))) ?? [];
  return rows.filter(({ address }) => best.includes(address)).map(({ inode, uid }) => ({ inode, uid }));
}

/** The part of a table with the listening sockets; empty if the system has no table. */
async function listeningPart(file: string): Promise<string> {
  const table = await open(file).catch(() => null);
  if (table === null) return '';
  await using closing = table;
  let text = '';
  const buffer = Buffer.alloc(TABLE_PART_BYTES);
  while (text.length < MAX_TABLE_BYTES) {
    const { bytesRead } = await closing.read(buffer, 0, TABLE_PART_BYTES, null);
    text += buffer.toString('latin1', 0, bytesRead);
    const last = text.slice(0, text.lastIndexOf('\n')).split('\n').at(-1) ?? '';
    if (bytesRead === 0 || !/^\s*(?:sl\b|\d+: \S+ \S+ 0A )/.test(last)) break;
  }
  return text;
}

/** Finds the listeners for connections to a port of 127.0.0.1. Null if the system does not report them. */
export type FindListeners = (port: number) => Promise<readonly Listener[] | null>;

export const findListeners: FindListeners = async (port) => {
  if (process.platform !== 'linux') return null;
  const tables = await Promise.all(TABLES.map(listeningPart));
  return tables.every((table) => table === '') ? null : listenersIn(tables.join('\n'), port);
};

/** The inodes of the sockets of a process and its children. */
async function socketsOf(pid: number): Promise<Set<string>> {
  const folder = `/proc/${pid}`;
  const files = await readdir(`${folder}/fd`).catch(() => []);
  const links = await Promise.all(files.map((file) => readlink(`${folder}/fd/${file}`).catch(() => '')));
  const own = links.flatMap((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1] ?? []);
  const children = await readFile(`${folder}/task/${pid}/children`, 'utf8').catch(() => '');
  const pids = children.split(' ').filter((word) => word !== '');
  const others = await Promise.all(pids.map((child) => socketsOf(Number(child))));
  return new Set([...own, ...others.flatMap((sockets) => [...sockets])]);
}

/**
 * The port of 127.0.0.1 on which a process or one of its children listens: `wanted` if it does, otherwise the lowest.
 * Systems other than Linux do not report listeners, so there any listener on `wanted` counts. Null if there is none.
 */
export async function listeningPort(pid: number, wanted: number): Promise<number | null> {
  const tables = (await Promise.all(TABLES.map(listeningPart))).join('\n');
  if (process.platform !== 'linux' || tables === '\n') {
    const socket = await connectToOwn(wanted, { find: async () => null });
    socket?.destroy();
    return socket === null ? null : wanted;
  }
  const sockets = await socketsOf(pid);
  const ports = new Set(
    [...tables.matchAll(/^ *\d+: [\dA-F]+:([\dA-F]{4}) /gm)].map(([, hex = '']) => parseInt(hex, 16)),
  );
  const own = [...ports].filter((port) => listenersIn(tables, port).some(({ inode }) => sockets.has(inode)));
  return own.includes(wanted) ? wanted : (own.toSorted((a, b) => a - b)[0] ?? null);
}

export interface OwnListenerOptions {
  readonly find?: FindListeners;
  /** The user of svcd. */
  readonly uid?: number;
}

/**
 * Connects to a port of 127.0.0.1 if its listener belongs to this user, before the connection and after it. So no other
 * program can have received it: a socket that listens all the time shares its port with no other user.
 * @returns null if nothing accepts the connection
 * @throws ForeignListener if another user listens there
 */
export async function connectToOwn(
  port: number,
  { find = findListeners, uid = process.getuid?.() ?? ROOT }: OwnListenerOptions = {},
): Promise<Socket | null> {
  const own = async (): Promise<ReadonlySet<string> | null> => {
    const listeners = await find(port);
    if (listeners?.some((one) => one.uid !== uid && one.uid !== ROOT) === true) throw new ForeignListener(port);
    return listeners === null ? null : new Set(listeners.map(({ inode }) => inode));
  };
  const before = await own();
  if (before?.size === 0) return null;
  const socket = connect({ host: HOST, port, allowHalfOpen: true });
  socket.on('error', () => {});
  try {
    await once(socket, 'connect');
  } catch {
    return null;
  }
  const after = await own().catch((error: unknown) => {
    socket.destroy();
    throw error;
  });
  if (before === null || after === null || !before.isDisjointFrom(after)) return socket;
  socket.destroy();
  return null;
}

/** A port of 127.0.0.1 that no program uses now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOST);
  await listening(server);
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
