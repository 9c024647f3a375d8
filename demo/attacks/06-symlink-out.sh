# tried: leave the project through a symlink that points at a host file
# would: read anything you can read
# bare: yes
ln -sf "$VICTIM_HOME/.ssh/id_ed25519" way-out
if cat way-out 2>why | grep -q KEY; then rm -f way-out why; echo "followed it"; exit 0; fi
sed 's/.*: //' why; rm -f way-out why
exit 3
