// Runs on any Node, so that an old one gets a clear word instead of a syntax error: CommonJS, and no
// syntax younger than import(). It starts the compiled program of an installed package, or the
// TypeScript sources of a checkout.
var fs = require('fs');
var path = require('path');
var url = require('url');

/** The oldest version that the package names: major and minor. */
var needed = require('../package.json').engines.node.replace('>=', '');

function isOld(version) {
  var wanted = needed.split('.').map(Number);
  var given = version.split('.').map(Number);
  return given[0] < wanted[0] || (given[0] === wanted[0] && given[1] < wanted[1]);
}

/** Node 24 calls its SQLite experimental at every start: a word for whoever chose it, not for users of svcd. */
function keepQuietAboutSqlite() {
  var emit = process.emitWarning;
  process.emitWarning = function (warning, type) {
    if (type !== 'ExperimentalWarning' || String(warning).indexOf('SQLite') === -1) emit.apply(process, arguments);
  };
}

module.exports = function launch(entry) {
  if (isOld(process.versions.node)) {
    process.stderr.write(
      'svcd needs Node ' +
        needed +
        ' or newer; this is Node ' +
        process.versions.node +
        '.\n' +
        'Install a current Node, or use a checkout: "npm ci && npm start" brings its own.\n',
    );
    process.exit(1);
  }
  keepQuietAboutSqlite();
  var source = path.join(__dirname, '..', 'src', entry + '.ts');
  var compiled = path.join(__dirname, '..', 'dist', entry + '.js');
  return import(url.pathToFileURL(fs.existsSync(source) ? source : compiled).href);
};
