/** What a daemon, and the supervisor of one, does when the system sends it a signal. */

/** Each of them ends a process cleanly; a second interrupt ends it at once. */
const STOPPING = ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const;
/** A terminal that closes sends it more than once, from the shell and from the kernel. */
const HANG_UP = 'SIGHUP';
/** Without a listener, each of them would kill the process, and SIGUSR1 would open Node's debugger on a local port. */
const IGNORED = ['SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGVTALRM'] as const;

function ignore(): void {}

/** Calls `stop` with the name of each signal that is to end this process, and ignores those that are not. */
export function onStopSignal(self: NodeJS.Process, stop: (signal: string) => void): void {
  for (const signal of STOPPING) self.once(signal, stop);
  self.on(HANG_UP, stop);
  for (const signal of IGNORED) self.on(signal, ignore);
}
