/** Converts file system errors to errors of the catalog. */
import { describeDiskError } from '../../foundation/disk-errors.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';

/** The error for a failed write. */
export function writeError(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new SvcError('not_writable', {
    message: `files_root cannot be written${describeDiskError(error)}`,
    details: { code: codeOf(error) },
    cause: error,
  });
}

/** Converts the error of disk work that fails. */
export function onDisk<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw writeError(error);
  });
}

/** The error for a file that a client named and that cannot be opened. */
export function lookupError(error: unknown, path: string): SvcError {
  if (error instanceof SvcError) return error;
  const code = codeOf(error);
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new SvcError('not_found', {
      thing: 'file',
      message: 'File not found below files_root.',
      details: { path },
    });
  return new SvcError('invalid_request', {
    message: `The file cannot be read (${code}).`,
    details: { path },
    cause: error,
  });
}
