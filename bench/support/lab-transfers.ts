/** A child process on a lab machine that uploads and downloads through a local port, and reports the speed. */
import { bulk, download, upload } from './tcp-client.ts';

export interface LabTransfer {
  readonly direction: 'up' | 'down';
  readonly host: string;
  readonly port: number;
  readonly bytes: number;
}

process.on('message', ({ direction, host, port, bytes }: LabTransfer) => {
  bulk(direction === 'up' ? upload : download, { host, port }, 1, bytes).then(
    (speed) => process.send?.(speed),
    () => process.exit(1),
  );
});
process.once('disconnect', () => process.exit(0));
