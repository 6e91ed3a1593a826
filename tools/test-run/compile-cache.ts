/** Loaded before an end-to-end test: its modules come from the compile cache. Its child processes do not use the cache. */
import { enableCompileCache } from 'node:module';

const directory = process.env['SVCD_TEST_COMPILED'];
delete process.env['SVCD_TEST_COMPILED'];
enableCompileCache(directory);
