"""What every package needs: types of plain data, and texts of messages."""
