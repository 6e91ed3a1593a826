/** Child process of data-dir.test.ts: opens the directory, reports that, and waits. */
import { systemClock } from '../../../src/foundation/clock.ts';
import { DataDir } from '../../../src/foundation/data-dir/data-dir.ts';
import { SvcError } from '../../../src/foundation/errors.ts';

const [, , path = ''] = process.argv;
try {
  const directory = DataDir.open({ path, version: '0.0.0' }, { clock: systemClock });
  directory.announce('127.0.0.1:4711');
  process.on('disconnect', () => directory.close());
  process.send?.('holds');
} catch (error) {
  process.on('disconnect', () => process.exit());
  process.send?.(error instanceof SvcError ? error.code : String(error));
}
