/** `svc mcp`: shares local MCP servers with other agents, and uses servers of other agents. */
import type { CommandGroup } from '../command-group.ts';
import { addShareCommand } from './mcp-share.ts';
import { addUseCommand } from './mcp-use.ts';

export function mcpCommands(svc: CommandGroup): void {
  const mcp = svc.group('mcp', 'share MCP servers with other agents, and use shared servers', [
    'svc mcp share --name notes --allow bob -- npx my-notes-server',
    'svc mcp use notes --into claude-code',
  ]);
  addShareCommand(mcp);
  addUseCommand(mcp);
}
