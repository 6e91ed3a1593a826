/** Signal handling of the daemon and its supervisor. */

/** Signals that stop the process cleanly. A second interrupt stops it immediately. SIGBREAK is from Windows. */
const STOPPING = ['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGBREAK'] as const;
/** A closing terminal sends it more than once, from the shell and from the kernel. */
const HANG_UP = 'SIGHUP';
/**
 * Without a listener, each of these signals would kill the process, and SIGUSR1 would open Node's debugger on a local
 * port.
 */
const IGNORED = ['SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGVTALRM'] as const;

function ignore(): void {}

/** Calls `stop` with the name of each stop signal, and ignores the other signals. */
export function onStopSignal(self: NodeJS.Process, stop: (signal: string) => void): void {
  for (const signal of STOPPING) self.once(signal, stop);
  self.on(HANG_UP, stop);
  for (const signal of IGNORED) self.on(signal, ignore);
}
