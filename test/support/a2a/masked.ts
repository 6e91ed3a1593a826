/** A verdict as JSON without values that differ between runs: IDs, times, and addresses of agents. */
export function masked(verdict: unknown): string {
  return JSON.stringify(verdict)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)/g, '<time>')
    .replace(/(?:http:\/\/)?127\.0\.0\.1:\d+/g, '<agent>');
}
