/** Faults of the file system in the terms of the catalogue. */
import { describeDiskError } from '../../foundation/disk-errors.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';

/** What a failed write is to its caller. */
export function writeError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new SvcError('not_writable', {
    message: `The folder files_root cannot be written${describeDiskError(error)}`,
    details: { code: codeOf(error) },
    cause: error,
  });
}

/** Settles as work on the disk does; its failure in the terms of the catalogue. */
export function onDisk<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw writeError(error);
  });
}

/** What a failed look at a file that somebody named is to him. */
export function lookupError(error: unknown, path: string): SvcError {
  if (error instanceof SvcError) return error;
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new SvcError('not_found', {
      thing: 'file',
      message: 'There is no such file below files_root.',
      details: { path },
    });
  return new SvcError('invalid_request', {
    message: `The file cannot be read (${code}).`,
    details: { path },
    cause: error,
  });
}
