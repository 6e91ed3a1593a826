/** Ports to which packets are sent because others named them. */

/** Ports below it belong to services: no translation hands them out, and nothing is sent there. */
export const FIRST_MAPPED_PORT = 1024;
/** The port of HTTP/3: firewalls let UDP through to it. */
const HTTPS_PORT = 443;

/** Whether a port at which a node says that it listens may be dialled. */
export function mayDialPort(port: number): boolean {
  return port >= FIRST_MAPPED_PORT || port === HTTPS_PORT;
}
