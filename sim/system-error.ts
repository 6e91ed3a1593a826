/** An error as Node throws it after a failed call of the system. */
export function systemError(code: string, syscall = 'simulated'): Error {
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall });
}
