/** A stdio process with or without a node, as the test chooses. Its libraries print to stdout. */
import { join } from 'node:path';
import { runMcpStdio } from '../../../src/daemon/mcp-stdio.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { bindAll } from './world.ts';

const [mode, dataDir = '', profiles] = process.argv.slice(2);

function print(): void {
  console.log('a library prints to stdout');
  process.stdout.write('and writes to it\n');
}

const handlers = {
  tunnelList: () => {
    print();
    return { tunnels: [], closed: [] };
  },
};
let starts = 0;
const args = { dataDir, configFile: join(dataDir, 'config.toml'), flags: {}, mcpStdio: { profiles } };
await runMcpStdio(args, process.env, async () => {
  print();
  if (mode === 'proxy') throw new SvcError('already_running', { details: { api_addr: '127.0.0.1:1' } });
  // Another stdio process is stopping.
  if (mode === 'handover' && starts++ < 2) throw new SvcError('already_running', { details: { api_addr: null } });
  const tools = new ToolTable({ operations: bindAll(handlers), pending: () => ({}) });
  const announceMcp = (): void => {};
  return {
    tools,
    channel: async () => ({ again_ms: 60_000 }),
    log: silentLog,
    announceMcp,
    stop: async (reason) => void process.stderr.write(`stopped: ${reason}\n`),
  };
});
