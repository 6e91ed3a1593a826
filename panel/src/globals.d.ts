/** Method and path of each operation that REST serves, by its name: tools/build-panel.ts takes them from the operations table. */
declare const ROUTES: Readonly<Record<string, string>>;
