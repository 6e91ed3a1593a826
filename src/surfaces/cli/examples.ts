/** Examples at the end of the help of a command; a test runs each through the parser. */

/**
 * The text for `addHelpText('after', …)`.
 * @param lines command lines as they are typed; a remark may stand behind `#`
 */
export function examples(...lines: readonly string[]): string {
  return `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
}
