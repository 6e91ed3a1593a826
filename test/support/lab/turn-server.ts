/** A TURN server (coturn) on a machine of a lab. */
import type { ChildProcess } from 'node:child_process';
import type { Machine } from './namespaces.ts';

/** Last byte of its address. */
export const TURN_NUMBER = 20;
export const TURN_HOST = `203.0.113.${TURN_NUMBER}`;
/** Configuration lines of a node that may use it. */
export const WITH_TURN: string = `[[turn_servers]]\nurl = "turn:${TURN_HOST}:3478"\nusername = "svc"\ncredential = "a password"\n`;

/** Nonces expire after a second, so that clients must renew them. */
export function startTurnServer(machine: Machine): ChildProcess {
  const account = ['--user=svc:a password', '--realm=lab', '--lt-cred-mech', '--stale-nonce=1'];
  const quiet = ['--no-cli', '--no-tls', '--no-dtls', '--no-tcp', '--log-file=/dev/null', '--pidfile=/dev/null', '-n'];
  const at = [`--listening-ip=${TURN_HOST}`, `--relay-ip=${TURN_HOST}`];
  return machine.spawn('turnserver', [...at, ...account, ...quiet]);
}
