const words = 'the agent wrote this and nobody read it'.split(' ');
console.log(`node ${process.versions.node}: ${words.length} words, longest "${words.sort((a, b) => b.length - a.length)[0]}"`);
