/** `svc mcp`: shares local MCP servers with other agents, and makes theirs available here. */
import type { CommandGroup } from '../command-group.ts';
import { addShareCommand } from './mcp-share.ts';
import { addUseCommand } from './mcp-use.ts';

export function mcpCommands(svc: CommandGroup): void {
  const mcp = svc.group('mcp', 'share an MCP server with other agents, and use theirs', [
    'svc mcp share --name notes --allow bob -- npx my-notes-server',
    'svc mcp use notes --into claude-code',
  ]);
  addShareCommand(mcp);
  addUseCommand(mcp);
}
