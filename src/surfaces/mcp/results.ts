/** Tool results: structured content and text, for success and errors. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { escapeUnsafe } from '../../foundation/display-text.ts';
import type { SvcError } from '../../foundation/errors.ts';
import { isObject } from '../../foundation/json.ts';
import type { ToolView } from '../../operations/tool-call.ts';
import { fence, untrustedNote } from './foreign-text.ts';
import { nextStep } from './next-steps.ts';

type Values = Readonly<Record<string, unknown>>;

/** The result of a successful call. */
export function success(tool: ToolView, args: Values, output: unknown): CallToolResult {
  if (!isObject(output)) return { content: [{ type: 'text', text: JSON.stringify(output) }] };
  if (!tool.foreignText)
    return { content: [{ type: 'text', text: JSON.stringify(output) }], structuredContent: { ...output } };
  const { pending, ...foreign } = output;
  const content: CallToolResult['content'] = [{ type: 'text', text: fence(tool.name, args, foreign) }];
  if (pending !== undefined) content.push({ type: 'text', text: JSON.stringify({ pending }) });
  return { content, structuredContent: { untrusted: untrustedNote(tool.name, args), ...output } };
}

/** The result of a failed call: code, message, next step. */
export function failure(error: SvcError): CallToolResult {
  const { code, message, details, thing } = error;
  const facts = details === undefined ? '' : `\nDetails: ${JSON.stringify(details)}`;
  // A message can quote an argument with foreign text.
  const text = escapeUnsafe(`${message}${facts}`).replaceAll('\\u000a', '\n');
  return { isError: true, content: [{ type: 'text', text: `Error ${code}: ${text}\nNext: ${nextStep(code, thing)}` }] };
}
